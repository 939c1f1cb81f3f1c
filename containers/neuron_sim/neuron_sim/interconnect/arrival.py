"""Meetings (barriers) of any group of workers, and the order of the steps that follow.

Worker i counts in `meetings[i][j]` how often it has come to meet worker j, and is the
only writer of row i. A meeting is complete when each worker has come to every other as
often as that one to it. The description of an operation (and a small payload) is in one
of the worker's two slots, so that one meeting both compares and exchanges. Steps after
the meeting are counted in `progress`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
import torch

from neuron_sim.errors import CollectiveError, MismatchError
from neuron_sim.interconnect import futex
from neuron_sim.interconnect.long_wait import LongWait, Patience
from neuron_sim.interconnect.peers import Peers, what
from neuron_sim.interconnect.region import Region

_CHECK_S = 0.5
_SPIN_S = 100e-6
_FOR_ALL = 0xFFFFFFFF
_FOR_POST = 0xFFFFFFFE
_COUNT = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


class Group:
    """An ordered group of workers of this host, as seen by one of them."""

    def __init__(self, members: Sequence[int], me: int) -> None:
        """``members``: local indices."""
        self.members = tuple(members)
        self.size = len(self.members)
        self.position = self.members.index(me)
        self.index = np.array(self.members, dtype=np.intp)

    def following(self) -> list[int]:
        """All positions, beginning with this worker's own, so that not all read the same buffer at once."""
        return [(self.position + number) % self.size for number in range(self.size)]


class Arrival:
    """This worker's side of all meetings in a region."""

    def __init__(self, region: Region, peers: Peers, timeout_s: float, patience: Patience) -> None:
        """``timeout_s``: how long a peer may take before the collective is given up."""
        self._region = region
        self._peers = peers
        self._me = region.index
        self._timeout_s = timeout_s
        self._patience = patience
        self._operation = 0
        self._group: Group | None = None
        self._operations: list[int] = []
        # Spin before sleeping only if every worker can have a processor of its own.
        self._spin_s = _SPIN_S if region.workers <= len(os.sched_getaffinity(0)) else 0.0
        self._digests: dict[str, tuple[bytes, bytes]] = {}

    def meet(self, group: Group, text: str, payload: torch.Tensor | None = None) -> list[int]:
        """Begin an operation, and return when every worker of the group has begun it.

        Returns which slot each worker has used. Call `finish` when the peers' slots
        and buffers are no longer needed.

        Raises:
            PeerLostError: a peer has ended, or did not come in time.
            MismatchError: workers do different things, or some wait for each other in different groups.
        """
        region, me = self._region, self._me
        self._free_for(group)
        self._operation += 1
        region.lost[me] = 0
        slot = self._operation & 1
        region.describe(slot, *self._encoded(text))
        if payload is not None:
            region.payloads[me, slot, : payload.numel()] = payload
        region.current[me] = self._operation
        futex.fence()
        row = region.meetings[me]
        targets = (row[group.index] + np.uint64(1)) & _COUNT
        row[group.index] = targets | np.uint64(self._operation << 32)
        futex.fence()
        if self._arrived(group, targets).all():
            self._wake(group, _FOR_ALL)
        else:
            self._wait(
                _FOR_ALL,
                lambda: bool(self._arrived(group, targets).all()),
                lambda waited_s: self._peers.reason(group.members, self._missing(group, targets), waited_s),
                lambda: self._missing(group, targets),
            )
        column = region.meetings[group.index, me]
        # A peer may be one meeting ahead already: then this meeting is that of its previous operation.
        self._operations = ((column >> _SHIFT) - (((column & _COUNT) - targets) & _COUNT)).tolist()
        slots = [operation & 1 for operation in self._operations]
        hashes = region.hashes[group.index, slots]
        if (hashes != hashes[0]).any():
            self.finish()
            raise MismatchError(self._peers.mismatch(group.members, slots))
        return slots

    def finish(self) -> None:
        """End the operation: the peers' slots and buffers are no longer read."""
        self._region.finished[self._me] = self._operation

    def busy(self, text: str) -> None:
        """Publish that this worker is in an operation that has no meeting on this host."""
        self._free_for(None)
        self._operation += 1
        self._region.describe(self._operation & 1, *self._encoded(text))
        self._region.current[self._me] = self._operation

    def done(self, steps: int, group: Group, *, all_wait: bool) -> None:
        """Publish that this worker has done so many steps; wake the next worker of the group, or all."""
        self._region.progress[self._me] = (self._operation << 32) + steps
        futex.fence()
        if all_wait:
            self._wake(group, self._me + 1)
        else:
            self._wake_one(group.members[group.position + 1], self._me + 1)

    def await_steps(self, group: Group, position: int, steps: int) -> None:
        """Wait until the member at this position has done so many steps of the current operation."""
        peer = group.members[position]
        target = (self._operations[position] << 32) + steps
        progress = self._region.progress
        if int(progress[peer]) < target:
            self._wait(
                peer + 1,
                lambda: int(progress[peer]) >= target,
                lambda waited_s: self._peers.reason(group.members, [peer], waited_s),
                lambda: [peer],
            )

    def post(self, word: np.ndarray, value: int) -> None:
        """Write a word that any worker may await with `await_post`, and wake those who do."""
        word[0] = value
        futex.fence()
        for worker in np.flatnonzero(self._region.asleep == _FOR_POST).tolist():
            self._wake_one(worker, _FOR_POST)

    def await_post(
        self, satisfied: Callable[[], bool], why: Callable[[float | None], CollectiveError | None]
    ) -> None:
        """Wait until it is ``satisfied``, which is tested after each `post`. ``why``: see `_wait`."""
        if not satisfied():
            others = [worker for worker in range(self._region.workers) if worker != self._me]
            self._wait(_FOR_POST, satisfied, why, lambda: others)

    def _encoded(self, text: str) -> tuple[bytes, bytes]:
        """A digest of the part that must be equal, and the whole text. The place in the script may differ."""
        known = self._digests.get(text)
        if known is None:
            if len(self._digests) > 1000:
                self._digests.clear()
            known = blake2b(what(text).encode(), digest_size=8).digest(), text.encode()
            self._digests[text] = known
        return known

    def _arrived(self, group: Group, targets: np.ndarray) -> np.ndarray:
        counts = self._region.meetings[group.index, self._me] & _COUNT
        # Differences modulo 2**32: the counters may wrap.
        there: np.ndarray = ((counts - targets) & _COUNT) < np.uint64(0x80000000)
        return there

    def _missing(self, group: Group, targets: np.ndarray) -> list[int]:
        arrived = self._arrived(group, targets)
        return [peer for peer, there in zip(group.members, arrived, strict=True) if not there]

    def _free_for(self, group: Group | None) -> None:
        """Before an operation of another group: wait until the last group has read all that this worker provided.

        Within one group, the next meeting ensures this.
        """
        last, self._group = self._group, group
        if last is None or last is group or not self._operations:
            return
        operations = np.array(self._operations, dtype=np.uint64)
        finished = self._region.finished
        started = time.monotonic()
        while not (finished[last.index] >= operations).all():
            # All have come already, and only copy.
            time.sleep(0.0001)
            if time.monotonic() - started > _CHECK_S:
                late = [
                    peer for peer, number in zip(last.members, self._operations, strict=True)
                    if finished[peer] < number
                ]  # fmt: skip
                self._peers.check(late)
                started = time.monotonic()

    def _wait(
        self,
        reason: int,
        satisfied: Callable[[], bool],
        why: Callable[[float | None], CollectiveError | None],
        missing: Callable[[], Sequence[int]],
    ) -> None:
        """Sleep until it is ``satisfied``. Regularly ask ``why`` it is not: an error to raise, or None to go on.

        ``why`` is given the time-out, in seconds, once that is over. ``missing``: the workers that can end the wait.
        """
        if self._spin_s:
            end = time.perf_counter() + self._spin_s
            while time.perf_counter() < end:
                if satisfied():
                    return
        region, me = self._region, self._me
        address = region.asleep_address + me * region.asleep_stride
        deadline = time.monotonic() + self._timeout_s
        check = time.monotonic() + _CHECK_S
        long_wait = LongWait(self._peers, self._patience, missing)
        try:
            while True:
                region.asleep[me] = reason
                futex.fence()
                if satisfied():
                    return
                futex.sleep(address, reason, _CHECK_S)
                if satisfied():
                    return
                now = time.monotonic()
                if now >= check:
                    check = now + _CHECK_S
                    error = why(self._timeout_s if now > deadline else None)
                    # A peer may have come since ``why`` was asked.
                    if error is not None and not satisfied():
                        raise error
                    long_wait.look(now)
        finally:
            long_wait.over()
            region.asleep[me] = 0

    def _wake(self, group: Group, reason: int) -> None:
        sleepers = group.index[self._region.asleep[group.index] == reason]
        for worker in sleepers.tolist():
            self._wake_one(worker, reason)

    def _wake_one(self, worker: int, reason: int) -> None:
        region = self._region
        if int(region.asleep[worker]) == reason:
            region.asleep[worker] = 0
            futex.wake(region.asleep_address + worker * region.asleep_stride)
