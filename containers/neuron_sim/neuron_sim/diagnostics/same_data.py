"""Whether the cores of a host train on the same data: each leaves digests of its first batches for the first core.

A script without a loader has none: then of what it brings to the exchange of gradients before its first updates.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch

from neuron_sim.counters.batches import tensors_of
from neuron_sim.diagnostics.meeting import Meeting

FIRST = 3
"""So many batches of a loader are compared, or updates."""
_VALUES = 1024
"""So many values of a tensor are looked at."""
_PLACEHOLDERS = "placeholders"
"""What a core leaves whose first batches are all alike, as torch_xla's SampleGenerator has them."""


def digest(batch: Any, value: int = 0) -> int:
    """A number that batches of the same values share."""
    for tensor in tensors_of(batch):
        if tensor.device.type == "cpu" and tensor.layout == torch.strided and not tensor.is_nested:
            flat = tensor.detach().resolve_conj().resolve_neg().reshape(-1)
            spread = flat[:: max(1, flat.numel() // _VALUES)].contiguous()
            value = zlib.crc32(spread.view(torch.uint8).numpy().tobytes(), value)
    return value


class SameData:
    """What each core has got first, and who got the same."""

    def __init__(self, meeting: Meeting) -> None:
        """Nothing has come."""
        self._meeting = meeting
        self._brought: list[int] = []
        self._value: int | None = None
        """Of what was brought since gradients were computed; None: of no interest."""

    def backward(self) -> None:
        """Gradients are computed anew: what was exchanged before were none of these."""
        compares = len(self._brought) < FIRST and not self._meeting.has_left
        self._value = 0 if compares else None

    def bring(self, tensors: Sequence[torch.Tensor]) -> None:
        """What this core brings to a collective, on the host."""
        if self._value is not None:
            self._value = digest(list(tensors), self._value)

    def updated(self, first: Sequence[int] | None) -> None:
        """Weights have changed. ``first``: digests of the batches of a loader; None: there is none."""
        if self._value:
            self._brought.append(self._value)
        self._value = None
        self._leave(self._brought if first is None else first)

    def _leave(self, first: Sequence[int]) -> None:
        """Let the other cores know, once there is enough to compare."""
        if len(first) == FIRST:
            self._meeting.leave(_PLACEHOLDERS if len(set(first)) == 1 else str(first))

    def others(self) -> tuple[list[int], list[int]]:
        """Ranks of this host that have got the same as this one, and those that have got something else. Placeholders
        are the same to all, and stand for data of which each would get its own.
        """
        left = self._meeting.left()
        mine = left.pop(self._meeting.rank, None)
        if mine is None:
            return [], []
        same = {rank for rank, theirs in left.items() if theirs == mine != _PLACEHOLDERS}
        return sorted(same), sorted(left.keys() - same)
