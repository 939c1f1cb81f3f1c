"""Collectives of the workers of one host, through their shared region.

Tensors of any size pass through two alternating halves of each worker's buffer.
Every operation ends with a meeting, so the next one, maybe of another group, may
write again. All tensors here are contiguous, one-dimensional and on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuron_sim.collectives import reduction
from neuron_sim.collectives.arrival import Arrival
from neuron_sim.collectives.region import Region
from neuron_sim.errors import MismatchError


class WithinHost:
    """This worker's collectives. Groups are local indices in ascending order of position."""

    def __init__(self, region: Region, arrival: Arrival) -> None:
        """Use a region that all workers have attached to."""
        self._region = region
        self._arrival = arrival
        self._me = region.index

    def leave(self) -> None:
        """Let the others know that this worker will not come again."""
        self._region.leave()

    def agree(self, group: Sequence[int], what: str) -> None:
        """Make sure that every worker of the group is about to do the same.

        Raises:
            MismatchError: it is not so; the message has every worker's own words.
        """
        self._region.describe(what)
        self._arrival.meet(group)
        said = {worker: self._region.description(worker) for worker in group}
        self._arrival.meet(group)
        # The last field is the place in the script, which may differ.
        if len({text.rpartition(" at ")[0] for text in said.values()}) > 1:
            lines = "\n".join(f"  local rank {worker}: {text}" for worker, text in said.items())
            raise MismatchError(
                f"the ranks of this group called different collectives:\n{lines}\n"
                "On trn1 this hangs or corrupts data: all ranks must call the same collectives in the same order."
            )

    def all_reduce(self, flat: torch.Tensor, name: str, group: Sequence[int]) -> None:
        """Reduce in place. Each worker reduces one segment for all, so all get the same bits."""
        position = list(group).index(self._me)
        per_chunk = max(1, self._region.half_bytes // flat.element_size())
        for number, start in enumerate(range(0, flat.numel(), per_chunk)):
            chunk = flat[start : start + per_chunk]
            buffers = self._halves(number, flat.dtype, chunk.numel(), group)
            buffers[position].copy_(chunk)
            self._arrival.meet(group)
            segments = [_segment(chunk.numel(), len(group), index) for index in range(len(group))]
            mine = segments[position]
            if mine.stop > mine.start:
                buffers[position][mine] = reduction.reduce(name, (buffer[mine] for buffer in buffers))
            self._arrival.meet(group)
            for segment, buffer in zip(segments, buffers, strict=True):
                chunk[segment] = buffer[segment]
        self._arrival.meet(group)

    def all_gather(self, flat: torch.Tensor, group: Sequence[int]) -> torch.Tensor:
        """Every worker's tensor, in the order of the group: shape (len(group), numel)."""
        result = torch.empty((len(group), flat.numel()), dtype=flat.dtype)
        per_chunk = max(1, self._region.half_bytes // flat.element_size())
        for number, start in enumerate(range(0, flat.numel(), per_chunk)):
            chunk = flat[start : start + per_chunk]
            buffers = self._halves(number, flat.dtype, chunk.numel(), group)
            buffers[list(group).index(self._me)].copy_(chunk)
            self._arrival.meet(group)
            for row, buffer in enumerate(buffers):
                result[row, start : start + chunk.numel()] = buffer
        self._arrival.meet(group)
        return result

    def all_to_all(self, rows: torch.Tensor, group: Sequence[int]) -> torch.Tensor:
        """Row j goes to the group's worker j; the result's row j came from it. Shape (len(group), n)."""
        position = list(group).index(self._me)
        count, width = rows.shape
        result = torch.empty_like(rows)
        per_chunk = max(1, self._region.half_bytes // rows.element_size() // count)
        for number, start in enumerate(range(0, width, per_chunk)):
            chunk = rows[:, start : start + per_chunk]
            buffers = self._halves(number, rows.dtype, chunk.numel(), group)
            buffers[position].view(chunk.shape).copy_(chunk)
            self._arrival.meet(group)
            for row, buffer in enumerate(buffers):
                result[row, start : start + chunk.shape[1]] = buffer.view(chunk.shape)[position]
        self._arrival.meet(group)
        return result

    def permute(self, flat: torch.Tensor, source: int | None, group: Sequence[int]) -> torch.Tensor:
        """The tensor of worker ``source``, or zeros without one. All of the group take part."""
        result = torch.zeros_like(flat)
        per_chunk = max(1, self._region.half_bytes // flat.element_size())
        for number, start in enumerate(range(0, flat.numel(), per_chunk)):
            chunk = flat[start : start + per_chunk]
            self._region.half(self._me, number % 2, flat.dtype, chunk.numel()).copy_(chunk)
            self._arrival.meet(group)
            if source is not None:
                result[start : start + per_chunk] = self._region.half(
                    source, number % 2, flat.dtype, chunk.numel()
                )
        self._arrival.meet(group)
        return result

    def _halves(
        self, number: int, dtype: torch.dtype, count: int, group: Sequence[int]
    ) -> list[torch.Tensor]:
        return [self._region.half(worker, number % 2, dtype, count) for worker in group]


def _segment(count: int, parts: int, index: int) -> slice:
    return slice(count * index // parts, count * (index + 1) // parts)
