"""Weights that a script changes by itself, without an optimizer: ``p.data.add_(-lr * p.grad)``.

No method is called that says so. But torch_xla gives a tensor another number when it is written to, and where gradients
are computed, the graph of the loss leads to the weights.
"""

from __future__ import annotations

from typing import Any

import _XLAC
import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim.counters import script_time

_MOST = 1000
"""Nodes of a graph that are looked at: the nearest weight is one of the last layer."""


class ByHand:
    """Of each weight that was met, its number at that time."""

    def __init__(self) -> None:
        """None was."""
        self._numbers: WeakIdKeyDictionary = WeakIdKeyDictionary()

    @script_time.set_aside
    def has_changed(self, loss: Any) -> bool:
        """Whether a weight nearest to what gradients are computed of is another one than the last time."""
        weight = _nearest_weight(loss)
        if weight is None:
            return False
        number = _XLAC._xla_get_tensor_id(weight)
        before = self._numbers.get(weight, number)
        self._numbers[weight] = number
        return bool(before != number)


def _nearest_weight(loss: Any) -> torch.nn.Parameter | None:
    waiting = [getattr(loss, "grad_fn", None)]
    for number, node in enumerate(waiting):
        weight = getattr(node, "variable", None)
        if isinstance(weight, torch.nn.Parameter):
            return weight if weight.is_xla else None
        if node is not None and number < _MOST:
            waiting += [each for each, _ in node.next_functions]
    return None
