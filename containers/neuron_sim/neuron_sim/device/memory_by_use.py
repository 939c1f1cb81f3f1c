"""Bytes in a core's device memory, by use, found through Python's garbage collector.

Going through all objects takes milliseconds, so it is done when something new happens, not at every step.
"""

from __future__ import annotations

import operator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim import live_objects

_optimizers: WeakIdKeyDictionary = WeakIdKeyDictionary()


@dataclass
class Parts:
    """Bytes by use. ``temporaries``: those of the graph that needs most, as XLA's CPU compiler plans them."""

    parameters: int = 0
    gradients: int = 0
    optimizer_state: int = 0
    other: int = 0
    temporaries: int = 0

    def __add__(self, other: Parts) -> Parts:
        """Add part by part."""
        mine, others = asdict(self), asdict(other)
        return Parts(**{name: mine[name] + others[name] for name in mine})

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return sum(self.by_use().values())

    def by_use(self) -> dict[str, int]:
        """The parts by their names in the counters."""
        return asdict(self)


def know(optimizer: Any, *_: Any) -> None:
    """Remember an optimizer that is about to step: its state will be on the device."""
    _optimizers[optimizer] = True


def live() -> Parts:
    """The bytes of the tensors that live on the device, each storage once, without temporaries."""
    parts = Parts()
    seen: set[int] = set()
    kinds = (torch.Tensor, torch.nn.Parameter)
    # Dead tensors in reference cycles count too, until Python collects them.
    tensors = live_objects.live(kinds.__contains__, operator.attrgetter("is_xla"))
    parameters = [tensor for tensor in tensors if type(tensor) is torch.nn.Parameter]
    parts.parameters = _bytes(parameters, seen)
    parts.gradients = _bytes([p.grad for p in parameters if p.grad is not None and p.grad.is_xla], seen)
    parts.optimizer_state = _bytes(_optimizer_state(), seen)
    parts.other = _bytes(tensors, seen)
    return parts


def _optimizer_state() -> list[torch.Tensor]:
    found = []
    for optimizer in list(_optimizers):
        for state in optimizer.state.values():
            values = state.values() if isinstance(state, dict) else ()
            found += [value for value in values if isinstance(value, torch.Tensor) and value.is_xla]
    return found


def _bytes(tensors: list[torch.Tensor], seen: set[int]) -> int:
    """Bytes of the storages that are not yet ``seen``: views share one. A wrapper of `torch.func` has no storage."""
    total = 0
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:
            continue
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            total += storage.nbytes()
    return total
