"""Reports a long wait in a collective: once in the log, and in notes for the process that may end the job.

Trainium logs nothing until the time-out, half an hour later. A rank that compiles its first
graph, or evaluates alone, also keeps the others waiting. Since it computes, that is reported
later and in other words.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import processes
from neuron_sim.interconnect import notes
from neuron_sim.interconnect.peers import Peers


@dataclass(frozen=True)
class Patience:
    """After how many seconds a wait is reported, and where notes of it go. None: nowhere."""

    notes_folder: Path | None = None
    long_s: float = 30.0
    """From this many seconds on, a wait is noted, and logged if the missing ranks compute nothing."""
    computing_s: float = 300.0
    """From this many seconds on, a wait is logged even if they compute."""
    look_s: float = 10.0
    """Seconds between two looks at what they have computed."""


_IDLE_SHARE = 0.02
"""The share of a processor's time below which a process counts as idle. If 32 ranks share two, each has 6 %."""

_MOST_ASKED = 4
"""Of how many missing ranks the log says what they do."""
_MAY_END = "A first compile, or an evaluation on one rank alone, looks like this and ends by itself."


class LongWait:
    """One wait of this worker. Call `look` regularly, and `over` at its end."""

    def __init__(self, peers: Peers, patience: Patience, missing: Callable[[], Sequence[int]]) -> None:
        """``missing``: the workers that this one waits for."""
        self._peers = peers
        self._patience = patience
        self._missing = missing
        self._since, self._started = time.time(), time.monotonic()
        self._due = self._started + patience.long_s - patience.look_s
        self._before: dict[int, float] = {}
        self._where = ""
        self._noted = False

    def look(self, now: float) -> None:
        """Report the wait if it is due. ``now``: monotonic clock. Cheap, except once per ``look_s`` of a long wait."""
        if now < self._due:
            return
        self._due = now + self._patience.look_s
        waited_s = now - self._started
        # A rank that waits for another one is not the cause, and reports itself which rank it waits for.
        causes = [peer for peer in self._missing() if self._peers.is_elsewhere(peer)]
        used = {peer: self._seconds(peer) for peer in causes}
        before, self._before = self._before, used
        if waited_s < self._patience.long_s:
            return
        if causes and not self._where and self._peers.speaks(self._missing()):
            self._say(causes, waited_s, {peer: used[peer] - before.get(peer, used[peer]) for peer in causes})
        if self._patience.notes_folder is not None:
            self._noted = True
            missing = self._peers.ranks(causes)
            note = notes.Note(self._peers.rank, self._peers.place, self._since, missing, self._where)
            notes.leave(self._patience.notes_folder, note)

    def _say(self, causes: Sequence[int], waited_s: float, computed: Mapping[int, float]) -> None:
        """Log the wait, unless the missing ranks compute and it is shorter than ``computing_s``."""
        computed_s = sum(computed.values())
        # Of a process that has not attached nothing is known: it may be importing.
        idle = computed_s < _IDLE_SHARE * self._patience.look_s and all(map(self._peers.pid, causes))
        if not idle and waited_s < self._patience.computing_s:
            return
        each = [(self._peers.name(peer), self._peers.whereabouts(peer)) for peer in causes[:_MOST_ASKED]]
        self._where = each[0][1] if len(causes) == 1 else "; ".join(map(" ".join, each))
        names, has = notes.ranks(self._peers.ranks(causes)), "has" if len(causes) == 1 else "have"
        sys.stdout.write(
            f"[windtunnel] rank {self._peers.rank} has waited {waited_s:.0f} s in {self._peers.place}; "
            f"{names} {has} not come ({self._where}; {computed_s:.1f} s of processor time in the last "
            f"{self._patience.look_s:.0f} s). {self._peers.advice if idle else _MAY_END}\n"
        )
        sys.stdout.flush()

    def over(self) -> None:
        """Called when the wait has ended, in whatever way: remove its note."""
        if self._noted and self._patience.notes_folder is not None:
            notes.take_back(self._patience.notes_folder)

    def _seconds(self, peer: int) -> float:
        used = processes.use(self._peers.pid(peer))
        return used.user_seconds + used.system_seconds if used is not None else 0.0
