"""What lies in a core's device memory, by use: found through Python's garbage collector.

A step through all objects costs milliseconds, so it is made when something new happens, not at every step.
"""

from __future__ import annotations

import gc
import operator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim import live_objects

_optimizers: WeakIdKeyDictionary = WeakIdKeyDictionary()


@dataclass
class Parts:
    """Bytes by use. ``temporaries``: of the graph that plans most of them, as XLA's CPU compiler plans."""

    parameters: int = 0
    gradients: int = 0
    optimizer_state: int = 0
    other: int = 0
    temporaries: int = 0

    def __add__(self, other: Parts) -> Parts:
        """Part by part."""
        mine, others = asdict(self), asdict(other)
        return Parts(**{name: mine[name] + others[name] for name in mine})

    @property
    def total(self) -> int:
        """All parts."""
        return sum(self.by_use().values())

    def by_use(self) -> dict[str, int]:
        """As the counters have it."""
        return asdict(self)


def freeze() -> None:
    """Keep what exists already out of each search."""
    gc.freeze()


def know(optimizer: Any, *_: Any) -> None:
    """Before an optimizer's step: it will have state on the device."""
    _optimizers[optimizer] = True


def live() -> Parts:
    """The tensors that live on the device, each storage once. Temporaries are not among them."""
    parts = Parts()
    seen: set[int] = set()
    kinds = (torch.Tensor, torch.nn.Parameter)
    # Many a dead tensor hangs in a cycle, which Python would find later.
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
    """Of the storages that are not yet ``seen``: views share one. What `torch.func` wraps a tensor in has none."""
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
