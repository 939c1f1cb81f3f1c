"""Values that the script read while they were pending: on which lines, and what that cost the step. Pure.

Such a value is computed by a graph of its own. Where more is left to do in the step, it is cut there; and what of that
needs the same matrix products computes them once more, for torch_xla keeps the value alone.
"""

from __future__ import annotations

from collections import Counter

from neuron_sim.counters.graphs import Ran
from neuron_sim.counters.hlo.products import Product


class PendingReads:
    """Of one step: told of each graph that has run, in their order, and once of each that was compiled."""

    def __init__(self) -> None:
        """Nothing has run."""
        self._products: dict[str, Counter[Product]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a step."""
        self._ran: list[Ran] = []
        self._repeated: Counter[str] = Counter()

    def compiled(self, graph: str, products: Counter[Product]) -> None:
        """A graph's matrix products. Those of the step must be known when it is written down."""
        self._products[graph] = products

    def knows(self, graph: str) -> bool:
        """Whether it has been compiled."""
        return graph in self._products

    def ran(self, ran: Ran) -> None:
        """A graph has run."""
        self._ran.append(ran)

    def repeats(self, graph: str) -> None:
        """This graph is a part of what a reading runs, and the step computes it again."""
        self._repeated[graph] += 1

    def record(self) -> dict[str, dict[str, int]]:
        """By line: how many values were read, how many of them cut the step, and how many let it compute again; and by
        graph, how many runs were ``repeated``.
        """
        accessed: Counter[str] = Counter()
        cut: Counter[str] = Counter()
        again: Counter[str] = Counter()
        repeated = self._repeated.copy()
        pending = self._pending()
        later: dict[str, None] = {}
        """The soonest last."""
        for at in range(len(self._ran) - 1, -1, -1):
            ran = self._ran[at]
            if ran.read_at is not None:
                accessed[ran.read_at] += 1
                cut[ran.read_at] += bool(later)
                if later and self._is_repeated(ran.graph, {**later, **pending[at]}):
                    again[ran.read_at] += 1
                    repeated[ran.graph] += 1
            later.pop(ran.graph, None)
            later[ran.graph] = None
        return {
            "accessed": dict(accessed),
            "cut": dict(+cut),
            "computed_again": dict(again),
            "repeated": dict(repeated),
        }

    def _pending(self) -> dict[int, dict[str, None]]:
        """Where a value is read, the pieces before it that a collective has cut off: on trn1 they have yet to run."""
        found: dict[int, dict[str, None]] = {}
        pieces: list[str] = []
        for at, ran in enumerate(self._ran):
            if ran.read_at is not None:
                found[at] = dict.fromkeys(pieces)
            if ran.is_cut:
                pieces.append(ran.graph)
            elif ran.read_at is None:
                pieces = []
        return found

    def _is_repeated(self, graph: str, others: dict[str, None]) -> bool:
        """Whether one of the others, the soonest last, has all its products. The same graph has other data."""
        mine = self._products.get(graph)
        if not mine:
            return False
        return any(
            other != graph and mine <= self._products.get(other, Counter()) for other in reversed(others)
        )
