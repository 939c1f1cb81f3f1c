"""A fixed piece of work that is like tracing a step, timed on this machine: what its seconds are to be held against.

Seconds of tracing say as much of the processor, its clock and its other load as of the script. Timed right before
them, under the same load, this work tells the two apart: the price model takes their ratio.
"""

from __future__ import annotations

import time

import torch
from torch.nn import functional

_TIMES = 20


def seconds() -> float:
    """Processor seconds of this thread for the work: small operations of torch, and their gradients, from Python.

    It draws no random numbers, changes no tensor of the script and is not on the device.
    """
    with torch.enable_grad():
        started = time.thread_time()
        weight, scale = torch.full((8, 8), 0.1, requires_grad=True), torch.ones(8, requires_grad=True)
        for _ in range(_TIMES):
            found = torch.ones(4, 8)
            for _layer in range(4):
                parts = {
                    "linear": functional.linear(found, weight),
                    "norm": functional.layer_norm(found, (8,), scale),
                }
                found = (
                    functional.gelu(parts["linear"].view(2, 2, 8).transpose(0, 1).reshape(4, 8))
                    + parts["norm"]
                )
            torch.autograd.grad(found.sum(), (weight, scale))
        return time.thread_time() - started
