"""Attention that is written out, and by scaled_dot_product_attention: a training step of each, with one line each."""

import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
from saying import say
from torch_xla.utils.checkpoint import checkpoint

DEVICE = torch_xla.device()
HEADS = (2, 4, 16, 16)  # samples, heads, length, size of a head

inputs = torch.nn.Linear(16, 16).to(DEVICE)
whole = torch.nn.MultiheadAttention(64, 4, batch_first=True).to(DEVICE)
optimizer = torch.optim.SGD([*inputs.parameters(), *whole.parameters()], lr=0.1)


def written_out(x):
    return (x @ x.transpose(2, 3)).softmax(3) @ x


def by_module(x):
    return whole(*[x.transpose(1, 2).flatten(2)] * 3, need_weights=False)[0]


def fused(x, *arguments, **keywords):
    return F.scaled_dot_product_attention(x, x, x, *arguments, **keywords)


mask = torch.ones(16, 16, dtype=torch.bool, device=DEVICE)
compiled = torch.compile(fused, backend="openxla")
for attend in (
    written_out,
    fused,
    lambda x: fused(x, is_causal=True),
    lambda x: fused(x, None, 0.0, True),
    lambda x: fused(x, attn_mask=mask),
    by_module,
    lambda x: checkpoint(fused, x),
    lambda x: fused(fused(x, is_causal=True)),
    lambda x: F.scaled_dot_product_attention(x[:1], x, x),
    compiled,
):
    output = attend(inputs(torch.ones(HEADS, device=DEVICE)))
    output.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    xm.mark_step()

plain = torch.randn(HEADS)
try:
    fused(torch.zeros(8, device=DEVICE))
except RuntimeError:
    refused = True
say(refused=refused, same=torch.allclose(fused(plain.to(DEVICE)).cpu(), fused(plain), atol=1e-5))
