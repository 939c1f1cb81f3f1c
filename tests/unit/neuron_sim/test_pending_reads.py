"""What a value that is read while it is pending costs its step."""

from __future__ import annotations

from collections import Counter

from neuron_sim.counters.graphs import Ran
from neuron_sim.counters.hlo.products import Product
from neuron_sim.counters.pending_reads import PendingReads

LAYER = Product(1, 8, 4, 2, "f32")
BACKWARD = Product(1, 4, 8, 2, "f32")
GRAPHS = {
    "forward": Counter({LAYER: 2}),
    "all": Counter({LAYER: 2, BACKWARD: 4}),
    "update": Counter[Product](),
    "labels": Counter[Product](),
}


def of(*ran: Ran, ended: bool = True) -> dict[str, dict[str, int]]:
    """What is written down of a step in which these graphs ran."""
    reads = PendingReads()
    for name, products in GRAPHS.items():
        reads.compiled(name, products)
    for one in ran:
        reads.ran(one)
    return reads.record(ended=ended)[0]


READ = Ran("forward", read_at="a.py:3")


def test_a_loss_that_is_read_before_its_step_ends_is_computed_again() -> None:
    assert of(READ, Ran("all")) == {
        "accessed": {"a.py:3": 1},
        "cut": {"a.py:3": 1},
        "computed_again": {"a.py:3": 1},
        "repeated": {"forward": 1},
    }


def test_what_leaves_nothing_to_compute_cuts_no_step() -> None:
    """Evaluation: the value is all that is computed with the batch."""
    assert of(READ) == {"accessed": {"a.py:3": 1}, "cut": {}, "computed_again": {}, "repeated": {}}


def test_the_same_graph_of_another_batch_repeats_nothing() -> None:
    """Evaluation where nothing ends a step."""
    assert of(READ, READ, READ) == {
        "accessed": {"a.py:3": 3},
        "cut": {"a.py:3": 2},
        "computed_again": {},
        "repeated": {},
    }


def test_what_the_rest_does_not_need_is_not_computed_again() -> None:
    found = of(Ran("labels", read_at="a.py:2"), READ, Ran("update"))
    assert found["cut"] == {"a.py:2": 1, "a.py:3": 1} and not found["computed_again"]


def test_what_a_collective_has_cut_off_is_left_to_compute_on_trn1() -> None:
    """Gradients are summed, then the loss is read: here they are there by then, on trn1 they are pending."""
    summed = Ran("all", is_cut=True)
    assert of(summed, READ, Ran("update"))["computed_again"] == {"a.py:3": 1}
    assert of(summed, READ, READ, Ran("update"))["computed_again"] == {"a.py:3": 2}
    assert of(summed, READ)["computed_again"] == {"a.py:3": 1}
    assert not of(summed, READ, ended=False)["computed_again"]
    assert not of(summed, Ran("update"), READ, Ran("update"))["computed_again"]


def test_what_runs_on_trn1_alone_is_run_there_if_anything_is_left_to_do() -> None:
    """The loss, read by itself; and the forward pass in the graph of an accuracy."""
    summed, update = Ran("all", is_cut=True), Ran("update")
    loss = Ran("forward", read_at="a.py:4", is_here=False)
    part, accuracy = Ran("forward", is_here=False, is_part=True), Ran("labels", read_at="a.py:5")

    def told(*ran: Ran, ended: bool = True) -> tuple[dict[str, int], Counter[str]]:
        reads = PendingReads()
        for name, products in GRAPHS.items():
            reads.compiled(name, products)
        for one in ran:
            reads.ran(one)
        record, elsewhere = reads.record(ended=ended)
        return record["repeated"], elsewhere

    assert told(summed, loss, part, accuracy, update) == ({"forward": 2}, Counter({"forward": 2}))
    assert told(summed, loss) == ({"forward": 1}, Counter({"forward": 1}))
    assert told(summed, loss, ended=False) == ({}, Counter())
    assert told(summed, part, accuracy, ended=False) == ({}, Counter())
    found = of(summed, loss, part, part, accuracy, update)
    assert found["cut"] == found["computed_again"] == {"a.py:4": 1, "a.py:5": 1}
    gathered = Ran("labels", read_at="a.py:4", is_here=False)
    assert of(summed, part, gathered, update)["computed_again"] == {"a.py:4": 1}


def test_each_step_is_for_itself() -> None:
    reads = PendingReads()
    for graph in READ, Ran("all"):
        reads.compiled(graph.graph, GRAPHS[graph.graph])
        reads.ran(graph)
    reads.begin()
    assert reads.record(ended=True)[0] == {"accessed": {}, "cut": {}, "computed_again": {}, "repeated": {}}
