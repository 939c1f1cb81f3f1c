"""Says how far products of the device, forward and backward, are from those of rounded and of whole inputs.

    auto_cast.py (bf16 | fp16 | tf32 | none)

Also which products of a model's training step take an input that is not rounded, by the step's HLO.
"""

import os
import re
import sys

import torch
import torch.nn.functional as F
import torch_xla
from saying import say
from torch.nn.grad import conv2d_input, conv2d_weight

DTYPE = sys.argv[1]
os.environ["NEURON_CC_FLAGS"] = "" if DTYPE == "none" else f"--auto-cast matmult --auto-cast-type={DTYPE}"


def rounded(value):
    """On the host, to nearest, ties to even: torch has no tf32, which keeps 10 bits of the fraction."""
    if DTYPE == "tf32":
        big = value.double() * (2**13 + 1)
        return (big.float().double() - (big.float().double() - value.double()).float().double()).float()
    return value.to({"bf16": torch.bfloat16, "fp16": torch.float16}[DTYPE]).float()


def whole(value):
    return value


def matmul(r, a, b, g):
    return r(a) @ r(b), r(g) @ r(b).mT, r(a).mT @ r(g)


def linear(r, x, w, b, g):
    return F.linear(r(x), r(w), b), r(g) @ r(w), r(g).mT @ r(x), g.sum(0)


def einsum(r, a, b, g):
    forward = torch.einsum("bij,bkj->bik", r(a), r(b))
    return forward, torch.einsum("bik,bkj->bij", r(g), r(b)), torch.einsum("bik,bij->bkj", r(g), r(a))


def conv2d(r, x, w, b, g):
    gradients = conv2d_input(x.shape, r(w), r(g)), conv2d_weight(r(x), w.shape, r(g))
    return F.conv2d(r(x), r(w), b), *gradients, g.sum((0, 2, 3))


CASES = {
    "matmul": (matmul, torch.matmul, [(8, 16), (16, 4)], (8, 4)),
    "batched": (matmul, torch.matmul, [(2, 3, 8, 16), (2, 3, 16, 4)], (2, 3, 8, 4)),
    "linear": (linear, F.linear, [(8, 16), (4, 16), (4,)], (8, 4)),
    "einsum": (einsum, lambda a, b: torch.einsum("bij,bkj->bik", a, b), [(2, 8, 16), (2, 4, 16)], (2, 8, 4)),
    "conv2d": (conv2d, F.conv2d, [(2, 3, 8, 8), (4, 3, 3, 3), (4,)], (2, 4, 6, 6)),
}


def differences(name):
    """From the reference of rounded and of whole inputs: the largest, of the result and of each gradient."""
    reference, function, shapes, result_shape = CASES[name]
    generator = torch.Generator().manual_seed(0)
    *values, gradient = (torch.randn(shape, generator=generator) for shape in (*shapes, result_shape))
    inputs = [value.to(device).requires_grad_() for value in values]
    result = function(*inputs)
    result.backward(gradient.to(device))
    got = [result.detach().cpu(), *(value.grad.cpu() for value in inputs)]

    def far(rounding):
        return [(a - b).abs().max().item() for a, b in zip(got, reference(rounding, *values, gradient))]

    return {"rounded": far(whole if DTYPE == "none" else rounded), "whole": far(whole)}


def exposed():
    """Products of a step of training that take an fp32 input that was not rounded, and how many there are."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv1d(4, 16, 3, padding=1),
        torch.nn.Flatten(2),
        torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        torch.nn.Linear(8, 4),
    ).to(device)
    model(torch.randn(2, 4, 8).to(device)).square().mean().backward()
    text = torch_xla._XLAC._get_xla_tensors_hlo([parameter.grad for parameter in model.parameters()])
    line = r"^\s*(?:ROOT )?%?([\w.-]+) = (\w+)\[[\d,]*\](?:\{[\d,]*\})? ([\w-]+)\((.*?)\)"
    made = {
        name: (dtype, code, re.findall(r"%?([\w.-]+\.\d+)", rest))
        for name, dtype, code, rest in re.findall(line, text, re.M)
    }

    def is_rounded(name):
        dtype, code, operands = made.get(name, ("", "", []))
        if code in ("reshape", "transpose", "broadcast", "reverse", "slice"):
            return is_rounded(operands[0])
        return code == "convert" and made[operands[0]][0] in ("bf16", "f16")

    products = [operands[:2] for _, code, operands in made.values() if code in ("dot", "convolution")]
    return [sum(not all(map(is_rounded, operands)) for operands in products), len(products)]


device = torch_xla.device()
say(cases={name: differences(name) for name in CASES}, exposed=exposed())
