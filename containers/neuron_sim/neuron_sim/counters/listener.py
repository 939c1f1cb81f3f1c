"""The interface of those that are told what runs, while it runs: diagnostics, the memory guard, the tools."""

from __future__ import annotations

from typing import Any

from neuron_sim.counters.graphs import Graph


class Listener:
    """Base class; a listener overrides the methods that it needs.

    All except `ended` are called on the first core of each host only. `graph` and `step` are called at the end of a
    step, `graph` also after many collectives. All except `waits` run in the thread of the script, where an exception
    ends the script.
    """

    def begin(self) -> None:
        """Counting begins anew: see `recorder.Recorder.begin`."""

    def graph(self, graph: Graph) -> None:
        """A graph has been compiled, and has run once at least."""

    def step(self, record: dict[str, Any]) -> None:
        """A step has ended: its record, as it is written."""

    def waits(self, seconds: float) -> None:
        """No step has ended for this long. Called every few seconds, in a thread of its own; must not raise."""

    def ended(self) -> None:
        """The script has ended, on any core; before `close`."""

    def close(self) -> None:
        """The script has ended; the last record follows."""
