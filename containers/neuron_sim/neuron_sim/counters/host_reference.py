"""A fixed piece of work that is like tracing a step, timed on this machine: what its seconds are to be held against.

Seconds of tracing say as much of the processor, its clock and its other load as of the script. Timed amid them, under
the same load, this work tells the two apart: the price model takes their ratio.
"""

from __future__ import annotations

import time

import torch
from torch.nn import functional

_TIMES, _ROUNDS = 20, 4
"""The quickest round counts, as tracing's least seconds do. Tracing BERT base took 16.9, 17.6 and (beside two busy
processes) 17.5 times as long, each in five steps of a rehearsal; in three steps that varied up to 23.4 times. Another
work, or another way to time it, needs another `REFERENCE_S` in the price model (`model.host_tracing`)."""


def seconds() -> float:
    """Processor seconds of this thread for a round of the work.

    It draws no random numbers, changes no tensor of the script and is not on the device.
    """
    threads = torch.get_num_threads()
    # A product of two small matrices would wait for another thread's turn: for seconds, beside much other work.
    torch.set_num_threads(1)
    try:
        return min(_round() for _ in range(_ROUNDS))
    finally:
        torch.set_num_threads(threads)


def _round() -> float:
    """Small operations of torch, and their gradients, from Python."""
    with torch.enable_grad():
        started = time.thread_time()
        weight, scale = (
            torch.full((8, 8), 0.1, requires_grad=True, device="cpu"),
            torch.ones(8, requires_grad=True, device="cpu"),
        )
        for _ in range(_TIMES):
            found = torch.ones(4, 8, device="cpu")
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
