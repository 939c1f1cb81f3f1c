"""A wait in a collective that takes long: said once in the log, and noted for whoever ends the job meanwhile.

Trainium says nothing until the time-out, half an hour later. A rank that compiles its first
graph, or evaluates alone, keeps the others waiting as well: it computes, so that is said later
and in other words.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import processes
from neuron_sim.interconnect import notes
from neuron_sim.interconnect.peers import Peers


@dataclass(frozen=True)
class Patience:
    """Seconds of a wait, and where notes of it go. None: nowhere."""

    notes_folder: Path | None = None
    long_s: float = 30.0
    """What is noted, and said when those who are missing compute nothing."""
    computing_s: float = 300.0
    """What is said though they compute."""
    look_s: float = 10.0
    """Between two looks at what they have computed."""


_IDLE_SHARE = 0.02
"""Of a processor's time, below which a process computes nothing. When 32 ranks share two, each still has 6 %."""

_MAY_END = "A first compile, or an evaluation on one rank alone, looks like this and ends by itself."


class LongWait:
    """One wait of this worker. `look` is to be called now and then, and `over` at its end."""

    def __init__(self, peers: Peers, patience: Patience, missing: Callable[[], Sequence[int]]) -> None:
        """``missing``: the workers that this one waits for."""
        self._peers = peers
        self._patience = patience
        self._missing = missing
        self._since, self._started = time.time(), time.monotonic()
        self._due = self._started + patience.long_s - patience.look_s
        self._before: dict[int, float] = {}
        self._said = self._noted = False

    def look(self, now: float) -> None:
        """``now``: of the monotonic clock. Cheap, but for once in ``look_s`` of a long wait."""
        if now < self._due:
            return
        self._due = now + self._patience.look_s
        waited_s = now - self._started
        # Who waits in turn for another rank is not the cause, and says itself whom it waits for.
        causes = [peer for peer in self._missing() if self._peers.is_elsewhere(peer)]
        used = {peer: self._seconds(peer) for peer in causes}
        before, self._before = self._before, used
        if waited_s < self._patience.long_s:
            return
        if self._patience.notes_folder is not None:
            self._noted = True
            note = notes.Note(self._peers.rank, self._peers.place, self._since, self._peers.ranks(causes))
            notes.leave(self._patience.notes_folder, note)
        if self._said or not causes or not self._peers.speaks(self._missing()):
            return
        computed_s = sum(used[peer] - before.get(peer, used[peer]) for peer in causes)
        # Of who has not attached nothing is known: it may be importing.
        idle = computed_s < _IDLE_SHARE * self._patience.look_s and all(map(self._peers.pid, causes))
        if idle or waited_s >= self._patience.computing_s:
            self._said = True
            sys.stdout.write(f"[windtunnel] {self._words(causes, waited_s, computed_s, idle=idle)}\n")
            sys.stdout.flush()

    def over(self) -> None:
        """The wait has ended, one way or the other."""
        if self._noted and self._patience.notes_folder is not None:
            notes.take_back(self._patience.notes_folder)

    def _seconds(self, peer: int) -> float:
        used = processes.use(self._peers.pid(peer))
        return used.user_seconds + used.system_seconds if used is not None else 0.0

    def _words(self, causes: Sequence[int], waited_s: float, computed_s: float, *, idle: bool) -> str:
        has = "has" if len(causes) == 1 else "have"
        doing = self._peers.elsewhere(causes[:4])
        where = doing[0][1] if len(causes) == 1 else "; ".join(f"rank {rank} {text}" for rank, text in doing)
        return (
            f"rank {self._peers.rank} has waited {waited_s:.0f} s in {self._peers.place}; "
            f"{notes.ranks(self._peers.ranks(causes))} {has} not come ({where}; {computed_s:.1f} s of processor time "
            f"in the last {self._patience.look_s:.0f} s). {self._peers.advice if idle else _MAY_END}"
        )
