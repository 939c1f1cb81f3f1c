"""A fixed piece of work that is like tracing a step, timed on this machine: what its seconds are to be held against.

Seconds of tracing say as much of the processor, its clock and its other load as of the script. Timed amid them, under
the same load, this work tells the two apart: the price model takes their ratio. It is tracing itself, of operations
whose results nobody keeps, so that it runs nothing. Small operations of the CPU are slowed down otherwise: beside two
busy processes the ratio to them was 8 to 14 % less, and to this 1 % (BERT's layers, 88 steps each, AMD EPYC).
"""

from __future__ import annotations

import time

import torch
import torch_xla
from torch.nn import functional

_TIMES, _ROUNDS = 12, 4
"""Another work, or another way to time it, needs another `REFERENCE_S` in the price model (`model.host_tracing`)."""


def seconds() -> float:
    """Processor seconds of this thread for a round of the work, the least of some.

    It draws no random numbers, changes no tensor of the script and adds nothing to its graphs.
    """
    return min(_round() for _ in range(_ROUNDS))


def _round() -> float:
    """Steps of AdamW, and what stands between the products of a layer."""
    with torch.no_grad():
        started = time.thread_time()
        weight, gradient, scale = (
            torch.ones(size, device=torch_xla.device()) for size in ((8, 8), (8, 8), (8,))
        )
        mean, square = torch.zeros_like(weight), torch.zeros_like(weight)
        for _ in range(_TIMES):
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            weight.addcdiv_(mean, (square.sqrt() / 0.9).add_(1e-8), value=-0.001)
            found = functional.layer_norm(weight, (8,), scale, scale)
            found = functional.gelu(found.view(2, 4, 8).transpose(0, 1).reshape(8, 8)) + weight
            gradient = torch.softmax(found, -1)
        return time.thread_time() - started
