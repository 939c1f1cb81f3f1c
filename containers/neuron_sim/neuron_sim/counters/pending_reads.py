"""Values that the script read while they were pending: on which lines, and what that cost the step. Pure.

Such a value is computed by a graph of its own. If the step has more to compute, this cuts it in two. If the rest needs
the same matrix products, it computes them once more, since torch_xla keeps only the value.
"""

from __future__ import annotations

from collections import Counter

from neuron_sim.counters.graphs import Ran
from neuron_sim.counters.hlo.products import Product


class PendingReads:
    """The reads of one step, found from the graphs that have run, in their order, and those that were compiled."""

    def __init__(self) -> None:
        """Nothing has run."""
        self._products: dict[str, Counter[Product]] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a step."""
        self._ran: list[Ran] = []

    def compiled(self, graph: str, products: Counter[Product]) -> None:
        """Note a graph's matrix products. Call for all graphs of a step before `record`."""
        self._products[graph] = products

    def knows(self, graph: str) -> bool:
        """Whether the products of a graph have been noted."""
        return graph in self._products

    def ran(self, ran: Ran) -> None:
        """Note that a graph has run, here or only on trn1."""
        self._ran.append(ran)

    def record(self, *, ended: bool) -> tuple[dict[str, dict[str, int]], Counter[str]]:
        """Returns the reads of the step, and how often each graph that has not run here runs on trn1.

        By line: how many values were read, how many of these cut the step, and how many made it compute something
        again. By graph: how many runs were ``repeated``. ``ended``: the script ended the step, rather than its own end,
        so that trn1 also ran the graphs that collectives had run here before.
        """
        accessed: Counter[str] = Counter()
        cut: Counter[str] = Counter()
        again: Counter[str] = Counter()
        repeated: Counter[str] = Counter()
        elsewhere: Counter[str] = Counter()
        pending = self._pending()
        later: dict[str, None] = {}
        """Graphs that run later in the step; the next one is last."""
        cuts, reader = False, None
        for at in range(len(self._ran) - 1, -1, -1):
            ran = self._ran[at]
            if ran.is_part:
                # A part of the graph of a read runs again if that read cuts the step.
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
        """For each read, by its position: the pieces that collectives cut off before it, which trn1 has yet to run."""
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
        """Whether another graph has all products of this one. The same graph does not count: it has other data."""
        mine = self._products.get(graph)
        if not mine:
            return False
        return any(
            other != graph and mine <= self._products.get(other, Counter()) for other in reversed(others)
        )
