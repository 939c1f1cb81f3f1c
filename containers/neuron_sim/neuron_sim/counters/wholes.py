"""Graphs as trn1 compiles them: what collectives cut into pieces here is one there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
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

    def ran(self, ran: Ran) -> int | None:
        """A graph has run; returns the number of its whole, or None: it is one of its own, to read a value."""
        if ran.read_at is not None:
            self.alone(ran.graph)
            return None
        number = self.number
        self.pieces[ran.graph] += 1
        if not ran.is_cut:
            self.end()
        return number

    def end(self) -> None:
        """What ran since the last one has ended is one graph to trn1, which compiles it once."""
        if self.pieces:
            self._ended(self.pieces)
            self.pieces = Counter()
            self.number += 1

    def alone(self, graph: str) -> None:
        """This graph has run, or runs on trn1, amid others."""
        self._ended({graph: 1})

    def _ended(self, pieces: Mapping[str, int]) -> None:
        found = frozenset(pieces.items())
        if found not in self._known:
            self._known.add(found)
            self._write({"kind": "uncut", "pieces": dict(pieces)})
