"""Finds why a peer does not come (it has ended, it waits elsewhere, or it is late), and makes the error for it."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import numpy as np

from neuron_sim import processes
from neuron_sim.errors import CollectiveError, MismatchError, PeerLostError
from neuron_sim.interconnect import stack
from neuron_sim.interconnect.region import FAILED, LEFT, Region

_COUNT = np.uint64(0xFFFFFFFF)
_SCRIPT_ENDED = "ended: its script has run to its end"
_SCRIPT_FAILED = "ended: its script has failed, see its own error"
_LOOKS = 4
CHANNEL_ADVICE = "Each xm.recv needs an xm.send with the same channel_id on another rank."
EQUALLY_ADVICE = "All ranks must call the same collectives equally often."
ADVICE = "On trn1 this hangs or corrupts data: all ranks must call the same collectives in the same order."


class Peers:
    """The other workers of this host, as the region and the system show them."""

    def __init__(self, region: Region, first_rank: int) -> None:
        """``first_rank``: the global rank of the host's first worker."""
        self._region = region
        self._first = first_rank
        self._cycle: tuple[tuple[int, int], ...] = ()
        self._still = b""
        self._still_looks = 0

    def check(self, missing: Sequence[int]) -> None:
        """Raise PeerLostError when one of these has ended."""
        ended = self._ended((), missing)
        if ended is not None:
            raise ended

    def reason(
        self, members: Sequence[int], missing: Sequence[int], waited_s: float | None
    ) -> CollectiveError | None:
        """The error that tells why these do not come; None if they still may. ``waited_s``: the time-out, once over."""
        error = self._waits_in_a_circle() or self._other_operation() or self._ended(members, missing)
        if error is None and waited_s is not None:
            names = ", ".join(str(self._first + peer) for peer in missing)
            doing = "; ".join(f"rank {self._first + peer} {self._doing(peer)}" for peer in missing[:4])
            error = PeerLostError(
                f"rank {names} did not come within {waited_s:.0f} s ({doing}); {self._mine()}"
            )
        return error

    def silence(self, sender: int | None, action: str, waited_s: float | None) -> CollectiveError | None:
        """The error that tells why nobody does what this worker waits for; None if somebody still may.

        ``sender``: the only worker that can, if it is known; ``action``: "send on channel 7".
        """
        region = self._region
        others = [worker for worker in range(region.workers) if worker != region.index]
        # A worker that has died may have been the sender; one that has left counts only if no other is there.
        suspects = [peer for peer in others if region.pids[peer] != LEFT or region.lost[peer]]
        error: CollectiveError | None = self._ended((), [sender] if sender is not None else suspects)
        if error is None:
            error = self.nobody_left(waited_s, action) or self._nobody_moves()
        return error

    def nobody_left(self, waited_s: float | None, action: str = "receive") -> PeerLostError | None:
        """The error if all others have ended, or the time is over; else None."""
        region = self._region
        others = [worker for worker in range(region.workers) if worker != region.index]
        if all(self._how(peer) is not None for peer in others):
            return PeerLostError(f"no other rank is left that could {action}; {self._mine()}")
        if waited_s is None:
            return None
        doing = "; ".join(f"{self.name(peer)} {self._doing(peer)}" for peer in others[:4])
        return PeerLostError(f"nobody came to {action} within {waited_s:.0f} s ({doing}); {self._mine()}")

    @property
    def rank(self) -> int:
        """This worker's global rank."""
        return self._first + self._region.index

    @property
    def place(self) -> str:
        """Where this worker is: ``all_reduce at train.py:88``."""
        return place(self._region.seat(self._region.index).text)

    @property
    def advice(self) -> str:
        """Advice on what to change in the script, so that such a wait ends."""
        return CHANNEL_ADVICE if self.place.startswith(("recv", "send")) else EQUALLY_ADVICE

    def ranks(self, workers: Sequence[int]) -> list[int]:
        """The global ranks of these workers."""
        return [self._first + worker for worker in workers]

    def pid(self, worker: int) -> int:
        """A worker's process id; 0 before it has attached."""
        return self._region.seat(worker).pid

    def is_elsewhere(self, worker: int) -> bool:
        """Whether a worker runs, and is in no collective."""
        seat = self._region.seat(worker)
        return not seat.busy and seat.pid not in (LEFT, FAILED)

    def speaks(self, missing: Sequence[int]) -> bool:
        """Whether this worker is the first of those that wait, so that only one of them reports it."""
        region = self._region
        waiting = [w for w in range(region.workers) if w not in missing and region.asleep[w]]
        return region.index <= min(waiting, default=region.index)

    def whereabouts(self, worker: int) -> str:
        """What a worker that is missed does: ``is at train.py:40, in no collective``. Blocks as `stack.line_of`."""
        region = self._region
        answers = int(region.stacks[worker])
        line = stack.line_of(int(region.pids[worker]), answers - 1) if answers else None
        # It may have come meanwhile.
        return (
            f"is at {line}, in no collective"
            if line and not region.seat(worker).busy
            else self._doing(worker)
        )

    def name(self, worker: int) -> str:
        """``rank 17``: the worker by its global rank."""
        return f"rank {self._first + worker}"

    def mismatch(self, members: Sequence[int], slots: Sequence[int]) -> str:
        """The error's text when these workers' slots describe different things."""
        lines = "\n".join(
            f"  rank {self._first + worker}: {self._region.text(worker, slot)}"
            for worker, slot in zip(members, slots, strict=True)
        )
        return f"the ranks of this group called different collectives:\n{lines}\n{ADVICE}"

    def _ended(self, members: Sequence[int], missing: Sequence[int]) -> PeerLostError | None:
        """The error about a worker that has ended: a missing one, one in the group's operation, or one these lost."""
        region = self._region
        concerned = [*missing, *(peer for peer in members if region.current[peer] != region.finished[peer])]
        for peer in concerned:
            if peer == region.index:
                continue
            # If it has lost a worker itself, that is the cause, and its own end only follows from that.
            cause = int(region.lost[peer]) - 1 if region.lost[peer] else peer
            how = self._how(cause)
            if how is not None:
                region.lost[region.index] = cause + 1
                seat = region.seat(cause)
                where = f" (it was in {place(seat.text)})" if seat.busy and seat.text else ""
                return peer_lost(self._first + cause, f"{how}{where}", self._mine())
        return None

    def _how(self, worker: int) -> str | None:
        """How a worker has ended; None while it runs, and before it has attached: it may still be importing."""
        pid = int(self._region.pids[worker])
        if pid == LEFT:
            return script_ended(self._region.remark_of(worker))
        if pid == FAILED:
            return _SCRIPT_FAILED
        return end_of(pid) if pid else None

    def _other_operation(self) -> MismatchError | None:
        """The error if a peer has come to this meeting for another operation; else None."""
        region, me = self._region, self._region.index
        mine = region.meetings[me] & _COUNT
        theirs = region.meetings[:, me] & _COUNT
        own = what(region.seat(me).text)
        for peer in range(region.workers):
            if peer == me or mine[peer] == 0 or mine[peer] != theirs[peer]:
                continue
            seat = region.seat(peer)
            # Only a peer that is still in the operation in which it came to meet this worker.
            here = int(region.meetings[peer, me] >> np.uint64(32)) == int(region.current[peer])
            now = int(region.meetings[me, peer] >> np.uint64(32)) == int(region.current[me])
            if here and now and seat.busy and what(seat.text) != own:
                both = sorted((me, peer))
                return MismatchError(self.mismatch(both, [int(region.current[w]) % 2 for w in both]))
        return None

    def _waits_in_a_circle(self) -> MismatchError | None:
        """The error if workers wait for each other in different groups (a deadlock), once two looks agree."""
        circle = self._circle()
        seen = tuple((worker, int(self._region.current[worker])) for worker in circle)
        before, self._cycle = self._cycle, seen
        if not circle or seen != before:
            return None
        lines = "\n".join(
            f"  rank {self._first + worker}: {self._region.seat(worker).text}, "
            f"waits for rank {self._first + circle[(number + 1) % len(circle)]}"
            for number, worker in enumerate(circle)
        )
        return MismatchError(f"these ranks wait for each other in different collectives:\n{lines}\n{ADVICE}")

    def _circle(self) -> list[int]:
        """A circle of waits that this worker's own wait leads into."""
        region = self._region
        counts = (region.meetings & _COUNT).astype(np.int64)
        busy = region.current != region.finished
        awaits = (counts > counts.T) & busy[:, None]
        return circle_from(region.index, awaits)

    def _nobody_moves(self) -> MismatchError | None:
        """The error if all running workers sleep, and nothing has changed over several looks: nobody can wake them."""
        region = self._region
        alive = [worker for worker in range(region.workers) if self._how(worker) is None]
        asleep = all(region.pids[worker] and region.asleep[worker] for worker in alive)
        state = (region.current, region.progress, region.meetings, region.letters, region.fetched)
        now = b"".join(words.tobytes() for words in state) if asleep else b""
        self._still_looks = self._still_looks + 1 if asleep and now == self._still else 0
        self._still = now
        if self._still_looks < _LOOKS:
            return None
        lines = "\n".join(f"  {self.name(worker)}: {region.seat(worker).text}" for worker in alive)
        return MismatchError(f"each of these ranks waits, and none can go on:\n{lines}\n{CHANNEL_ADVICE}")

    def _doing(self, peer: int) -> str:
        seat = self._region.seat(peer)
        if not seat.pid:
            return "has not started"
        if seat.busy:
            return f"waits in {place(seat.text)}"
        return "is not in a collective" + (f", its last was {place(seat.text)}" if seat.text else "")

    def _mine(self) -> str:
        return f"rank {self.rank} waited in {self.place}"


def script_ended(remark: str) -> str:
    """Says how a script that ran to its end has ended; ``remark``: what its rank has left for the others."""
    return f"ended after {remark}" if remark else _SCRIPT_ENDED


def peer_lost(rank: int, how: str, waited: str) -> PeerLostError:
    """The error about a rank that has ended; ``waited``: which rank waited for it, and where."""
    # Any other end has its own cause, so the missed collectives are not to blame.
    advice = f" {EQUALLY_ADVICE}" if how == _SCRIPT_ENDED else ""
    return PeerLostError(f"rank {rank} {how}; {waited}.{advice}")


def circle_from(start: int, awaits: np.ndarray) -> list[int]:
    """A circle in ``awaits`` that can be reached from ``start``, smallest index first; empty without one."""
    path: list[int] = []
    done: set[int] = set()

    def visit(node: int) -> list[int]:
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return []
        path.append(node)
        for following in np.flatnonzero(awaits[node]).tolist():
            if found := visit(following):
                return found
        path.pop()
        done.add(node)
        return []

    circle = visit(start)
    first = circle.index(min(circle)) if circle else 0
    return circle[first:] + circle[:first]


def what(text: str) -> str:
    """The part of a description that must be equal on all ranks: without the place in the script."""
    return text.rpartition(" at ")[0] or text


def place(text: str) -> str:
    """``all_reduce at train.py:88`` from a description in full."""
    doing, _, where = text.rpartition(" at ")
    return f"{doing.split(' ')[0]} at {where}" if doing else text.split(" ")[0]


def how_ended(code: int) -> str:
    """``exited with signal SIGKILL (9)`` or ``exited with code 3``; a signal is a negative code."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"exited with signal {signal.Signals(-code).name} ({-code})"
    except ValueError:
        return f"exited with signal {-code}"


def end_of(pid: int) -> str | None:
    """How a process has ended, as far as the system still shows it; None while it runs."""
    try:
        fields = processes.stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return f"ended: there is no process {pid} any more"
    if fields[0] not in "ZX":
        return None
    # The last field is what wait() gives the parent, which has not asked yet.
    status = int(fields[-1])
    return how_ended(-(status & 0x7F) if status & 0x7F else status >> 8)
