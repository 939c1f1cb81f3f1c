"""Graphs as trn1 compiles them: what collectives cut into pieces here is one there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from neuron_sim.counters.graphs import Ran


class Wholes:
    """Told of each graph that has run, in their order; writes each whole down once."""

    def __init__(self, write: Callable[[dict[str, Any]], None]) -> None:
        """Nothing has run. ``write`` takes records for the counters."""
        self._write = write
        self.pieces: Counter[str] = Counter()
        """Graphs of the whole that runs."""
        self._known: set[frozenset[tuple[str, int]]] = set()
        self.number = 0
        """Of the whole that runs: how many have ended."""

    def ran(self, ran: Ran) -> int:
        """A graph has run; returns the number of its whole."""
        number = self.number
        self.pieces[ran.graph] += 1
        if not ran.is_cut:
            self.end()
        return number

    def end(self) -> None:
        """What ran since the last one has ended is one graph to trn1, which compiles it once."""
        pieces = frozenset(self.pieces.items())
        self.pieces.clear()
        self.number += bool(pieces)
        if pieces and pieces not in self._known:
            self._known.add(pieces)
            self._write({"kind": "uncut", "pieces": dict(pieces)})
