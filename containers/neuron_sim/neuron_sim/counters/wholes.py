"""Graphs as trn1 compiles them: pieces into which collectives cut a graph here are one whole there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from neuron_sim.counters.graphs import Ran


class Wholes:
    """Joins the graphs that have run, in their order, to wholes; writes a record of each different whole once."""

    def __init__(self, write: Callable[[dict[str, Any]], None]) -> None:
        """Nothing has run. ``write`` takes records for the counters."""
        self._write = write
        self.pieces: Counter[str] = Counter()
        """The graphs of the current whole, and how often each has run in it."""
        self._known: set[frozenset[tuple[str, int]]] = set()
        self.number = 0
        """The number of the current whole: how many have ended before."""

    def ran(self, ran: Ran) -> int | None:
        """Note a graph that has run. Returns the number of its whole; None for a graph that only reads a value."""
        if ran.read_at is not None:
            self.alone(ran.graph)
            return None
        number = self.number
        self.pieces[ran.graph] += 1
        if not ran.is_cut:
            self.end()
        return number

    def end(self) -> None:
        """End the current whole: to trn1 the graphs since the last end are one graph, which it compiles once."""
        if self.pieces:
            self._ended(self.pieces)
            self.pieces = Counter()
            self.number += 1

    def alone(self, graph: str) -> None:
        """Note a graph that has run by itself, or would on trn1, between the pieces of a whole."""
        self._ended({graph: 1})

    def _ended(self, pieces: Mapping[str, int]) -> None:
        found = frozenset(pieces.items())
        if found not in self._known:
            self._known.add(found)
            self._write({"kind": "uncut", "pieces": dict(pieces)})
