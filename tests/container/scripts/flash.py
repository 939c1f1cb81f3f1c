"""Neuron's flash attention kernels against plain PyTorch, on the device."""

import contextlib
import io

import torch
import torch_xla
from saying import say

from neuron_sim.device.flash_attention import FlashConfig, flash_attn_bwd, flash_fwd

device = torch_xla.device()


def compared(tokens, shared, causal, dtype=torch.float32):
    """The largest differences of the result and of the gradients of q, k and v."""
    torch.manual_seed(tokens)
    samples = 2 if tokens < 1000 else 1
    q, k, v = (torch.randn(samples, heads, 16, tokens, dtype=dtype) for heads in (4, shared, shared))
    rows = [one.transpose(2, 3).float().requires_grad_() for one in (q, k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(*rows, is_causal=causal, enable_gqa=True)
    gradient = torch.randn_like(want).to(dtype)
    want.backward(gradient.float())
    q, k, v, gradient = (one.to(device) for one in (q, k, v, gradient))
    given = {"use_causal_mask": causal, "mixed_precision": True, "dropout_p": 0.0, "softmax_scale": None}
    got, sums = flash_fwd[2, 4](q, k, v, None, config=FlashConfig(should_transpose_v=True), **given)
    again = flash_fwd[2, 4](q, k, v.transpose(2, 3), None, config=FlashConfig(training=False), **given)
    assert torch.equal(got.cpu(), again.cpu())
    parts = flash_attn_bwd[2, 4](
        q, k, v, got.transpose(2, 3), gradient.transpose(2, 3), sums, seed=None, **given
    )
    pairs = [(got, want), *((part.transpose(2, 3), row.grad) for part, row in zip(parts, rows))]
    return max((a.cpu().float() - b).abs().max().item() for a, b in pairs)


said = io.StringIO()
with contextlib.redirect_stdout(said):
    worst = {
        f"{tokens} {shared} {causal}": compared(tokens, shared, causal)
        for tokens, shared, causal in ((256, 4, True), (256, 2, False), (1152, 2, True), (1152, 4, False))
    }
    rounded = compared(1024, 2, True, torch.bfloat16)
try:
    flash_fwd[1, 1](
        torch.ones(1, 1, 8, 128), torch.ones(1, 1, 8, 128), torch.ones(1, 1, 128, 8), dropout_p=0.1
    )
except RuntimeError as error:
    dropout = str(error)
try:
    flash_fwd[1, 1](torch.ones(1, 1, 8, 100), torch.ones(1, 1, 8, 100), torch.ones(1, 1, 100, 8))
except ValueError as error:
    odd = str(error)
q, k = torch.ones(1, 1, 8, 1024), torch.ones(1, 1, 8, 512)
v = torch.arange(512.0).expand(1, 1, 8, 512).transpose(2, 3)
means = flash_fwd[1, 1](q, k, v, config=FlashConfig(training=False))[0, 0, :, 0]
longer = [round(means[place].item(), 2) for place in (0, 511, 1023)]
say(
    worst=worst,
    bf16=rounded,
    dropout=dropout,
    odd=odd,
    longer=longer,
    told=said.getvalue().count("flash attention:"),
)
