"""In-place all_reduces whose results are used, changed and kept in every way that a step does."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from saying import say

device = torch_xla.device()
rank, world = xr.global_ordinal(), xr.world_size()
SHAPES = [(7,), (3, 5), (0,), (), (64,), (33, 1)]
DTYPES = [torch.float32, torch.bfloat16, torch.int32]


def value(step, who):
    generator = torch.Generator().manual_seed(1000 * step + who)
    return [
        torch.randint(-50, 50, shape, generator=generator).to(dtype) for shape in SHAPES for dtype in DTYPES
    ]


kept, wanted = [], []
for step in range(12):
    tensors = [part.to(device) for part in value(step, rank)]
    xm.all_reduce("sum", tensors, scale=2.0)
    expected = [sum(parts) * 2 for parts in zip(*(value(step, who) for who in range(world)), strict=True)]
    if step % 3 == 1:
        for tensor, want in zip(tensors, expected, strict=True):
            tensor.add_(1)
            want.add_(1)
        torch_xla.sync()
        for tensor, want in zip(tensors, expected, strict=True):
            tensor.mul_(2)
            want.mul_(2)
    if step % 3 == 2:
        # A second time: what is lent already is the input.
        xm.all_reduce("sum", tensors)
        expected = [want * world for want in expected]
    kept.append(tensors)
    wanted.append(expected)

weight = torch.ones(4, 3, device=device, requires_grad=True)
factor = torch.full((4, 3), rank + 1.0, device=device)
for _ in range(3):
    # Accumulated over three steps, each reduced: what was lent is changed in place.
    (weight * factor).sum().backward()
    xm.all_reduce("sum", [weight.grad])
    torch_xla.sync()

wrong = [
    (step, index)
    for step, (tensors, expected) in enumerate(zip(kept, wanted, strict=True))
    for index, (tensor, want) in enumerate(zip(tensors, expected, strict=True))
    if not torch.equal(tensor.cpu(), want)
]
say(wrong=wrong, gradient=weight.grad.cpu().tolist())
