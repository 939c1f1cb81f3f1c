"""A fixed piece of work that is like tracing a step, timed on this machine: what its seconds are to be held against.

Seconds of tracing say as much of the processor, its clock and its other load as of the script. Timed right before
them, under the same load, this work tells the two apart: the price model takes their ratio.
"""

from __future__ import annotations

import time
from statistics import fmean

import torch
from torch.nn import functional

_TIMES, _ROUNDS = 20, 6
"""Of the rounds the quicker half counts: together about as long as tracing a step, whose least seconds of a few
steps it is held against. Another work, or another way to count it, needs another `REFERENCE_S` in the price model
(`model.host_tracing`), which says how much longer a known step takes."""


def seconds() -> float:
    """Processor seconds of this thread for a round of the work.

    It draws no random numbers, changes no tensor of the script and is not on the device.
    """
    return fmean(sorted(_round() for _ in range(_ROUNDS))[: _ROUNDS // 2])


def _round() -> float:
    """Small operations of torch, and their gradients, from Python."""
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
