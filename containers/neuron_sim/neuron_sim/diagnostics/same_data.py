"""Whether the cores of a host train on the same data: each leaves digests of its first batches for the first core.

In a script without a loader the digests are of what each core brings to the exchange before its first updates.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch

from neuron_sim.counters.batches import tensors_of
from neuron_sim.diagnostics.meeting import Meeting

FIRST = 3
"""How many batches of a loader, or updates, are compared."""
_VALUES = 1024
"""About how many values of a tensor are looked at."""
_PLACEHOLDERS = "placeholders"
"""Left by a core whose first batches are all the same, as those of torch_xla's SampleGenerator."""


def digest(batch: Any, value: int = 0) -> int:
    """A checksum of some values of a batch's tensors on the host, continued from ``value``."""
    for tensor in tensors_of(batch):
        if tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_nested:
            flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
            spread = flat[:: max(1, flat.numel() // _VALUES)].contiguous()
            value = zlib.crc32(spread.view(torch.uint8).numpy().tobytes(), value)
    return value


class SameData:
    """What this core has got first, and which cores have got the same."""

    def __init__(self, meeting: Meeting) -> None:
        """Nothing has come."""
        self._meeting = meeting
        self._brought: list[int] = []
        self._value: int | None = None
        """The digest of what was brought since gradients were computed; None: not needed."""

    def backward(self) -> None:
        """Called when gradients are computed: what was exchanged before are not these gradients."""
        compares = len(self._brought) < FIRST and not self._meeting.has_left
        self._value = 0 if compares else None

    def bring(self, tensors: Sequence[torch.Tensor]) -> None:
        """Called with what this core brings to a collective, on the host."""
        if self._value is not None:
            self._value = digest(list(tensors), self._value)

    def updated(self, first: Sequence[int] | None) -> None:
        """Called when weights have changed. ``first``: digests of a loader's first batches; None without a loader."""
        if self._value:
            self._brought.append(self._value)
        self._value = None
        self._leave(self._brought if first is None else first)

    def _leave(self, first: Sequence[int]) -> None:
        """Leave the digests for the other cores, once there are enough to compare."""
        if len(first) == FIRST:
            self._meeting.leave(_PLACEHOLDERS if len(set(first)) == 1 else str(first))

    def others(self) -> tuple[list[int], list[int]]:
        """Ranks of this host that have got the same as this one, and those that have got something else. Placeholders
        count as something else: they stand for data of which each core would get its own.
        """
        left = self._meeting.left()
        mine = left.pop(self._meeting.rank, None)
        if mine is None:
            return [], []
        same = {rank for rank, theirs in left.items() if theirs == mine != _PLACEHOLDERS}
        return sorted(same), sorted(left.keys() - same)
