"""Graphs as trn1 compiles them."""

from __future__ import annotations

from typing import Any

from neuron_sim.counters.graphs import Ran
from neuron_sim.counters.wholes import Wholes

CUT, UPDATE = Ran("forward and backward", is_cut=True), Ran("update")
READ = Ran("accuracy", read_at="a.py:3")


def test_what_collectives_cut_is_one_graph_and_is_written_once() -> None:
    written: list[dict[str, Any]] = []
    wholes = Wholes(written.append)
    assert [wholes.ran(ran) for ran in (CUT, UPDATE, CUT, UPDATE)] == [0, 0, 1, 1]
    assert written == [{"kind": "uncut", "pieces": {CUT.graph: 1, UPDATE.graph: 1}}]


def test_what_reads_a_value_amid_pieces_is_a_graph_of_its_own() -> None:
    """And leaves the pieces together: on trn1 they run when the step ends."""
    written: list[dict[str, Any]] = []
    wholes = Wholes(written.append)
    assert [wholes.ran(ran) for ran in (CUT, READ, UPDATE)] == [0, None, 0]
    wholes.alone("loss")
    assert [record["pieces"] for record in written] == [
        {READ.graph: 1},
        {CUT.graph: 1, UPDATE.graph: 1},
        {"loss": 1},
    ]


def test_pieces_that_nothing_has_ended_are_one_graph_at_the_end() -> None:
    written: list[dict[str, Any]] = []
    wholes = Wholes(written.append)
    assert wholes.ran(CUT) == 0 and not written
    wholes.end()
    wholes.end()
    assert [record["pieces"] for record in written] == [{CUT.graph: 1}]
