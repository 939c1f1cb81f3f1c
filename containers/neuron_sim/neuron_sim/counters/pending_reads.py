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

    def compiled(self, graph: str, products: Counter[Product]) -> None:
        """A graph's matrix products. Those of the step must be known when it is written down."""
        self._products[graph] = products

    def knows(self, graph: str) -> bool:
        """Whether it has been compiled."""
        return graph in self._products

    def ran(self, ran: Ran) -> None:
        """A graph has run, here or on trn1 alone."""
        self._ran.append(ran)

    def record(self, *, ended: bool) -> tuple[dict[str, dict[str, int]], Counter[str]]:
        """By line: how many values were read, how many of them cut the step, and how many let it compute again.

        By graph, how many runs were ``repeated``. And how often graphs that have not run here run on trn1. ``ended``:
        by the script, and not with it, so that trn1 ran what collectives have run here before.
        """
        accessed: Counter[str] = Counter()
        cut: Counter[str] = Counter()
        again: Counter[str] = Counter()
        repeated: Counter[str] = Counter()
        elsewhere: Counter[str] = Counter()
        pending = self._pending()
        later: dict[str, None] = {}
        """The soonest last."""
        cuts, reader = False, None
        for at in range(len(self._ran) - 1, -1, -1):
            ran = self._ran[at]
            if ran.is_part:
                # What runs in the graph of a reading is run again if that leaves anything to do.
                repeated[ran.graph] += cuts
                elsewhere[ran.graph] += cuts
                if reader is not None:
                    again[reader] += cuts
                    reader = None
                continue
            if ran.read_at is not None:
                cuts = bool(later) or (ended and bool(pending[at]))
                accessed[ran.read_at] += 1
                cut[ran.read_at] += cuts
                reader = ran.read_at
                if cuts and self._is_repeated(ran.graph, {**later, **pending[at]}):
                    again[ran.read_at] += 1
                    repeated[ran.graph] += 1
                    reader = None
                elsewhere[ran.graph] += cuts and not ran.is_here
            if ran.is_here:
                later.pop(ran.graph, None)
                later[ran.graph] = None
        told = {"accessed": accessed, "cut": cut, "computed_again": again, "repeated": repeated}
        return {name: dict(+counts) for name, counts in told.items()}, +elsewhere

    def _pending(self) -> dict[int, dict[str, None]]:
        """Where a value is read, the pieces before it that a collective has cut off: on trn1 they have yet to run."""
        found: dict[int, dict[str, None]] = {}
        pieces: list[str] = []
        for at, ran in enumerate(self._ran):
            if ran.read_at is not None:
                found[at] = dict.fromkeys(pieces)
            if ran.is_cut:
                pieces.append(ran.graph)
            elif ran.read_at is None and ran.is_here:
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
