"""Who is told of what runs, while it runs: diagnostics, the memory guard, the tools."""

from __future__ import annotations

from typing import Any

from neuron_sim.counters.graphs import Graph


class Listener:
    """Who wants to know what runs; each method may stay as it is here.

    `graph` and `step` are called as it is noticed, at the end of a step or of many collectives, and like the others
    on the first core of each host only. All but `waits` in the thread of the script; an exception ends the script.
    """

    def begin(self) -> None:
        """Counting begins anew: see `recorder.Recorder.begin`."""

    def graph(self, graph: Graph) -> None:
        """A graph has been compiled, and has run once at least."""

    def step(self, record: dict[str, Any]) -> None:
        """A step has ended: its record, as it is written."""

    def waits(self, seconds: float) -> None:
        """No step has ended for so long: every few seconds, in a thread of its own. Raises nothing."""

    def close(self) -> None:
        """The script has ended; the last record follows."""
