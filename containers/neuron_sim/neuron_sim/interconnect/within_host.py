"""Collectives of the workers of one host, through their shared region.

An operation whose data fit into a slot is one meeting. Larger ones pass through the
workers' buffers in pieces small enough to stay in the processor's cache: each
worker's tensor is read from memory once and written once. A buffer is written again
only when the order of the steps ensures that all have read it. All tensors here are
contiguous, one-dimensional and on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuron_sim.interconnect import reduction
from neuron_sim.interconnect.arrival import Arrival, Group
from neuron_sim.interconnect.mail import Mail
from neuron_sim.interconnect.region import PAYLOAD_BYTES, Region

PIECE_BYTES = 2 * 2**20
"""Bytes of one piece: enough for few process switches, and a few pieces still fit a third-level cache."""

_LEAST_PIECE_BYTES = 32 * 1024
_AHEAD = 4
"""How many pieces of a reduction are in progress at once."""


class WithinHost:
    """This worker's collectives. Groups are local indices, in the order of gathered parts and of reductions."""

    def __init__(self, region: Region, arrival: Arrival, mail: Mail) -> None:
        """Use a region that all workers have attached to."""
        self.region = region
        self.arrival = arrival
        self.mail = mail
        """Sends and receives over channels."""
        self._me = region.index
        self._groups: dict[tuple[int, ...], Group] = {}

    def agree(self, members: Sequence[int], text: str) -> None:
        """Make sure that every worker of the group is about to do the same.

        Raises:
            MismatchError: they are not; the message has every worker's description.
        """
        self.arrival.meet(self._group(members), text)
        self.arrival.finish()

    def all_reduce(
        self, flat: torch.Tensor, result: torch.Tensor, name: str, members: Sequence[int], text: str
    ) -> None:
        """Reduce in the order of the group into ``result``, which may be ``flat`` itself."""
        group = self._group(members)
        if flat.nbytes <= PAYLOAD_BYTES:
            parts = self._exchange(flat, group, text)
            result.copy_(reduction.reduce(name, parts))
            self.arrival.finish()
            return
        self.arrival.meet(group, text)
        try:
            self._relay(flat, result, 0, name, group)
        finally:
            self.arrival.finish()

    def reduce_scatter(
        self, rows: torch.Tensor, name: str, members: Sequence[int], text: str
    ) -> torch.Tensor:
        """This worker's row of the reduction. Shape (len(members), n) to (n,)."""
        group = self._group(members)
        width = rows.shape[1]
        mine = torch.empty(width, dtype=rows.dtype)
        self.arrival.meet(group, text)
        try:
            self._relay(rows.view(-1), mine, group.position * width, name, group)
        finally:
            self.arrival.finish()
        return mine

    def _exchange(self, flat: torch.Tensor, group: Group, text: str) -> list[torch.Tensor]:
        """Every worker's small tensor, as views of the slots; valid until `finish`."""
        slots = self.arrival.meet(group, text, flat.view(torch.uint8))
        payloads = self.region.payloads
        return [
            payloads[worker, slot, : flat.nbytes].view(flat.dtype)
            for worker, slot in zip(group.members, slots, strict=True)
        ]

    def _relay(self, flat: torch.Tensor, wanted: torch.Tensor, offset: int, name: str, group: Group) -> None:
        """Each worker in turn adds its piece to a total in shared memory; then all copy the total.

        ``wanted`` gets the part of the result that begins at ``offset``. Every worker alternates
        between adding and copying, at most `_AHEAD` totals apart. So when one begins a total, all
        have copied the total that was in its place before.
        """
        arrival, region = self.arrival, self.region
        wide = reduction.accumulator(name, flat.dtype)
        combine = reduction.combiner(name, flat.dtype)
        places = 2 * _AHEAD + 2
        rows = -(-places // group.size)
        size = _piece(flat.numel() * wide.itemsize, region.buffer_bytes // rows) // wide.itemsize
        totals = [
            region.view(group.members[i % group.size], i // group.size * size * wide.itemsize, wide, size)
            for i in range(places)
        ]
        count, position, last = flat.numel(), group.position, group.size - 1
        pieces = -(-count // size)
        for step in range(pieces + _AHEAD):
            if step < pieces:
                start = step * size
                mine = flat[start : start + size]
                total = totals[step % places][: mine.numel()]
                if position:
                    arrival.await_steps(group, position - 1, step + 1)
                    combine(total, mine.to(wide))
                else:
                    total.copy_(mine)
                arrival.done(step + 1, group, all_wait=position == last)
            if step >= _AHEAD:
                number = step - _AHEAD
                start, stop = number * size, min(count, (number + 1) * size)
                low, high = max(start, offset), min(stop, offset + wanted.numel())
                arrival.await_steps(group, last, number + 1)
                if low < high:
                    wanted[low - offset : high - offset] = totals[number % places][low - start : high - start]

    def all_gather(self, flat: torch.Tensor, members: Sequence[int], text: str) -> torch.Tensor:
        """Every worker's tensor, in the order of the group: shape (len(members), numel)."""
        group = self._group(members)
        if flat.nbytes <= PAYLOAD_BYTES:
            result = torch.stack(self._exchange(flat, group, text))
            self.arrival.finish()
            return result
        result = torch.empty((group.size, flat.numel()), dtype=flat.dtype)
        rows = [(position, result[position]) for position in group.following()]
        self._pass_on(flat[None], [(position, 0, row) for position, row in rows], group, text)
        return result

    def all_to_all(self, rows: torch.Tensor, members: Sequence[int], text: str) -> torch.Tensor:
        """Row j goes to the group's worker j; the result's row j came from it. Shape (len(members), n)."""
        group = self._group(members)
        result = torch.empty_like(rows)
        wanted = [(position, group.position, result[position]) for position in group.following()]
        self._pass_on(rows, wanted, group, text)
        return result

    def permute(
        self, flat: torch.Tensor, source: int | None, members: Sequence[int], text: str
    ) -> torch.Tensor:
        """The tensor of worker ``source``, or zeros without one. All of the group take part."""
        group = self._group(members)
        if source is None:
            self._pass_on(flat[None], [], group, text)
            return torch.zeros_like(flat)
        result = torch.empty_like(flat)
        self._pass_on(flat[None], [(group.members.index(source), 0, result)], group, text)
        return result

    def _pass_on(
        self,
        rows: torch.Tensor,
        wanted: Sequence[tuple[int, int, torch.Tensor]],
        group: Group,
        text: str,
    ) -> None:
        """Each worker shows its rows piece by piece; ``wanted``: (position, row there, target).

        A worker shows a piece only after it has copied all that it wants of the previous one,
        and has two places: so a place is free again when all show the next piece.
        """
        arrival, region = self.arrival, self.region
        arrival.meet(group, text)
        try:
            count, width = rows.shape
            size = _piece(rows.nbytes, region.buffer_bytes // 2) // rows.element_size()
            size = max(1, size // count)
            pieces = -(-width // size)
            for step in range(pieces):
                chunk = rows[:, step * size : (step + 1) * size]
                if step >= 2:
                    # Wait for all, not only for those from which this worker copies: all copy from it.
                    for position in range(group.size):
                        arrival.await_steps(group, position, step)
                place = step % 2 * (size * count * rows.element_size())
                self._shown(self._me, place, chunk).copy_(chunk)
                arrival.done(step + 1, group, all_wait=True)
                for position, row, target in wanted:
                    if group.members[position] != self._me:
                        arrival.await_steps(group, position, step + 1)
                        source = self._shown(group.members[position], place, chunk)[row]
                    else:
                        source = chunk[row]
                    target[step * size : (step + 1) * size] = source
        finally:
            arrival.finish()

    def _shown(self, worker: int, place: int, like: torch.Tensor) -> torch.Tensor:
        return self.region.view(worker, place, like.dtype, like.numel()).view(like.shape)

    def _group(self, members: Sequence[int]) -> Group:
        key = tuple(members)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, self._me)
        return group


def _piece(total_bytes: int, room_bytes: int) -> int:
    """Bytes of a piece, a multiple of 64. Even a medium tensor has a few pieces, so that workers overlap."""
    size = min(PIECE_BYTES, max(_LEAST_PIECE_BYTES, total_bytes // 8), room_bytes)
    return max(64, size // 64 * 64)
