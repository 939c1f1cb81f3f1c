"""Whether the cores of a host train on the same batches: each leaves digests of its first ones for the first core."""

from __future__ import annotations

import contextlib
import itertools
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from neuron_sim.counters.batches import parts_of

FIRST = 3
"""So many batches of a loader are compared."""
_VALUES, _DEPTH, _PARTS = 1024, 4, 64
"""How many values of a tensor are looked at, and how deep and wide a batch is searched for tensors."""


def digest(batch: Any, value: int = 0, depth: int = _DEPTH) -> int:
    """A number that batches of the same values share. Only looks into what can be looked at twice."""
    if isinstance(batch, torch.Tensor):
        if batch.device.type != "cpu" or batch.layout != torch.strided or batch.is_nested:
            return value
        flat = batch.detach().resolve_conj().resolve_neg().reshape(-1)
        spread = flat[:: max(1, flat.numel() // _VALUES)].contiguous()
        return zlib.crc32(spread.view(torch.uint8).numpy().tobytes(), value)
    if depth:
        for part in itertools.islice(parts_of(batch), _PARTS):
            value = digest(part, value, depth - 1)
    return value


class SameData:
    """Where the cores of a host meet. ``folder``: one that they share; None: nothing is compared."""

    def __init__(self, folder: Path | None, rank: int) -> None:
        """Make nothing yet."""
        self._folder = None if folder is None else folder / ".first-batches"
        self._rank = rank
        self._has_left = False

    def leave(self, first: Sequence[int]) -> None:
        """Let the other cores know, once. A full or missing folder is no reason to end a training."""
        if self._folder is not None and len(first) == FIRST and not self._has_left:
            self._has_left = True
            with contextlib.suppress(OSError):
                self._folder.mkdir(exist_ok=True, parents=True)
                (self._folder / str(self._rank)).write_text(str(first))

    def others(self) -> list[int]:
        """Ranks of this host that have left the same as this one."""
        if self._folder is None:
            return []
        with contextlib.suppress(OSError):
            left = {int(file.name): file.read_text() for file in self._folder.iterdir()}
            mine = left.pop(self._rank, None)
            return sorted(rank for rank, theirs in left.items() if theirs and theirs == mine)
        return []
