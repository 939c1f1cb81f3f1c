"""Weights that a script changes by itself, without an optimizer: ``p.data.add_(-lr * p.grad)``.

No method call tells of it. But torch_xla gives a tensor a new id when it is written to, and when gradients are
computed, the autograd graph of the loss leads to the weights.
"""

from __future__ import annotations

from typing import Any

import _XLAC
import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim.counters import script_time

_MOST = 1000
"""How many nodes of the autograd graph are looked at; the nearest weight is in the last layer."""


class ByHand:
    """Keeps torch_xla's id of each weight that was met, as of that time."""

    def __init__(self) -> None:
        """No weight was met."""
        self._numbers: WeakIdKeyDictionary = WeakIdKeyDictionary()

    @script_time.set_aside
    def has_changed(self, loss: Any) -> bool:
        """Whether the weight nearest to the loss has been written to since the last time."""
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
