"""Says with which of the compiler's documented refusals some operations end."""

import re

import torch
import torch.nn.functional as F
import torch_xla
from saying import say
from torch import nn

from neuron_sim.errors import CompilationError

DEVICE = torch_xla.device()
images = torch.randn(2, 4, 16, 16).to(DEVICE).requires_grad_()
square = torch.randn(4, 4).to(DEVICE)
numbers = torch.randint(0, 5, (4, 6)).to(DEVICE)
whole, real = torch.zeros(4, 6, dtype=torch.long, device=DEVICE), torch.zeros(4, 6, device=DEVICE)


def gradients(module):
    module.to(DEVICE)
    return torch.autograd.grad(module(images).sum(), [images, *module.parameters()])


CASES = {
    "stride and dilation": lambda: gradients(nn.Conv2d(4, 4, 3, stride=2, dilation=2)),
    "stride": lambda: gradients(nn.Conv2d(4, 4, 3, stride=2)),
    "dilation": lambda: gradients(nn.Conv2d(4, 4, 3, dilation=2)),
    "transposed, dilated": lambda: nn.ConvTranspose2d(4, 4, 3, stride=2, dilation=2).to(DEVICE)(images),
    "transposed": lambda: gradients(nn.ConvTranspose2d(4, 4, 3, stride=2)),
    "topk of integers": lambda: torch.topk(numbers, 2),
    "topk": lambda: torch.topk(square, 2),
    "sort of integers": lambda: torch.sort(numbers),
    "eigh": lambda: torch.linalg.eigh(square),
    "inverse": lambda: torch.inverse(square),
    "triangular solve": lambda: torch.triangular_solve(square, square),
    "shift": lambda: torch.bitwise_right_shift(numbers.int(), numbers),
    "shift of 16 bits": lambda: torch.bitwise_right_shift(numbers.short(), numbers.short()),
    "scatter_add of integers": lambda: whole.scatter_add(1, numbers, numbers),
    "scatter_add": lambda: real.scatter_add(1, numbers, numbers.float()),
    "scatter": lambda: whole.scatter(1, numbers, 1),
    "one_hot": lambda: F.one_hot(numbers, 8),
    "index_add of integers": lambda: whole.index_add(0, numbers[:, 0] % 4, numbers),
    "index_put, accumulated": lambda: whole.index_put((numbers[:, 0] % 4,), numbers, accumulate=True),
    "index_put": lambda: whole.index_put((numbers[:, 0] % 4,), numbers),
    "cummax": lambda: torch.cummax(images, 1),
    "cumsum of integers": lambda: torch.cumsum(numbers, 1),
    "max_pool2d with indices": lambda: F.max_pool2d(images, 2, return_indices=True),
}
for name, case in CASES.items():
    made, codes = case(), []
    try:
        torch_xla.sync()
    except CompilationError as error:
        codes = re.findall(r"\[(NCC_\w+)\]", error.reasons)
    say(case=name, codes=codes)
