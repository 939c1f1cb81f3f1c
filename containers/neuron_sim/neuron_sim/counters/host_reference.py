"""A fixed piece of work like tracing a step. Seconds of tracing are compared with its seconds on the same machine.

Seconds of tracing depend on the processor, its clock and its other load as much as on the script. This work is timed
within the step, under the same load; the price model takes the ratio. It is tracing too, of operations whose results
are dropped, so that nothing is executed. Small CPU operations would not do, since load slows them differently: beside
two busy processes the ratio to them was 8 to 14 % lower, and to this work 1 % (BERT's layers, 88 steps each, AMD EPYC).
"""

from __future__ import annotations

import time

import _XLAC
import torch
import torch_xla
from torch.autograd import profiler
from torch.nn import functional

_TIMES = 24
_ROUNDS = 2, 4
"""The least and the most rounds. The shortest of two rounds takes 3 to 5 % more than the shortest of four.

Who changes the work, or how it is timed, must change `REFERENCE_S` in the price model too (`model.host_tracing`)."""
# Taken at import, before the script can replace these functions.
_ones, _zeros_like, _softmax = torch.ones, torch.zeros_like, torch.softmax
_gelu, _layer_norm = functional.gelu, functional.layer_norm


def goes_unseen() -> bool:
    """Whether the work stays lazy (no eager mode), and no mode or profiler of the script's sees it."""
    return not (
        _XLAC._get_use_eager_mode() or torch._C._len_torch_dispatch_stack() or profiler._is_profiler_enabled
    )


def seconds(at_most_s: float) -> float:
    """CPU seconds of this thread for a round of the work, the least of several rounds. Together these take not much
    longer than ``at_most_s``.

    It draws no random numbers, changes no tensor of the script and adds nothing to its graphs.
    """
    # fp32, since stochastic rounding to bf16 would advance the script's random numbers.
    with torch._C.DisableTorchFunction(), torch.autocast("xla", enabled=False), torch.no_grad():
        found: list[float] = []
        while len(found) < _ROUNDS[0] or (len(found) < _ROUNDS[1] and sum(found) < at_most_s):
            found.append(_round())
        return min(found)


def _round() -> float:
    """Trace steps of AdamW and the operations between a layer's matrix products; the CPU seconds of that."""
    started = time.thread_time()
    weight, gradient, scale = (
        _ones(size, device=torch_xla.device(), dtype=torch.float32) for size in ((8, 8), (8, 8), (8,))
    )
    mean, square = _zeros_like(weight), _zeros_like(weight)
    for _ in range(_TIMES):
        mean.lerp_(gradient, 0.1)
        square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        weight.addcdiv_(mean, (square.sqrt() / 0.9).add_(1e-8), value=-0.001)
        found = _layer_norm(weight, (8,), scale, scale)
        found = _gelu(found.view(2, 4, 8).transpose(0, 1).reshape(8, 8)) + weight
        gradient = _softmax(found, -1)
    return time.thread_time() - started
