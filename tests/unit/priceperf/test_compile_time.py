"""Modelled neuronx-cc time: what it rests on, and that a warm cache takes it away."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.counters import Counters
from windtunnel.priceperf import FullScale, Workload, compare, instance_type
from windtunnel.priceperf.calibration.data_files import table
from windtunnel.priceperf.errors import InvalidInput
from windtunnel.priceperf.model import compile_time, fixed_costs
from windtunnel.priceperf.model.compile_time import CompiledGraph

TRN1, P4D = instance_type("ml.trn1.2xlarge"), instance_type("ml.p4d.24xlarge")

FLOPS = st.floats(0, 1e16)


def of_size(flops: float) -> compile_time.CompileTime:
    """A graph of which nothing but its FLOPs is known."""
    return compile_time.of_graph(CompiledGraph(flops))


def test_the_published_figures_come_out() -> None:
    """BERT-Large's step, 6 FLOPs a parameter and token, in about 13 minutes; a small graph in 7 s."""
    assert of_size(6 * 336e6 * 16 * 128).seconds == pytest.approx(13 * 60, rel=0.05)
    assert of_size(0).seconds == 7


def published() -> list[tuple[list[CompiledGraph], float]]:
    """The graphs of each first compilation, and its seconds."""
    found = []
    for row in table("published_compilations"):
        counts = row["operations"].split()
        flops, convolved = (float(row[name]) / len(counts) for name in ("flops", "convolution_flops"))
        graphs = [CompiledGraph(flops, False, float(count), convolved) for count in counts]
        found.append((graphs, float(row["seconds"])))
    return found


def test_published_compilations_of_what_was_counted_lie_inside() -> None:
    """The rates were chosen with these in sight; by FLOPs alone half of them lie outside, up to 8 times too short."""
    assert len(published()) == 11
    outside, shortest = 0, 1.0
    for graphs, seconds in published():
        counted = compile_time.of_graphs(graphs)
        assert counted.low_s < seconds < counted.high_s
        by_flops = compile_time.of_graphs([CompiledGraph(graph.flops) for graph in graphs])
        outside += not by_flops.low_s < seconds < by_flops.high_s
        shortest = min(shortest, by_flops.seconds / seconds)
    assert outside >= 5 and shortest < 1 / 7


def test_older_counters_tell_no_convolutions_so_their_operations_say_nothing() -> None:
    """A convolution makes up most of such a graph's time."""
    assert compile_time.of_graph(CompiledGraph(3.29e11, False, 1169)) == of_size(3.29e11)


def test_operations_and_convolutions_take_time_and_other_arithmetic_none() -> None:
    """Where they are known. No graph takes longer than the longest."""
    graph = CompiledGraph(1e12, False, 1000, 1e11)
    assert compile_time.of_graph(graph) == compile_time.of_graph(graph._replace(flops=9e12))
    assert compile_time.of_graph(graph._replace(operations=2000)).seconds == pytest.approx(
        compile_time.of_graph(graph).seconds + 15
    )
    assert compile_time.of_graph(graph._replace(convolved=0.0)).seconds == pytest.approx(18)
    assert compile_time.of_graph(graph._replace(operations=10**9)).seconds == compile_time.MOST.seconds


@given(FLOPS, FLOPS)
def test_larger_graphs_take_longer_and_the_interval_holds_the_middle(one: float, other: float) -> None:
    """For any size."""
    small, large = (of_size(flops) for flops in sorted((one, other)))
    assert small.seconds <= large.seconds
    assert 0 < large.low_s < large.seconds < large.high_s


@given(st.lists(st.tuples(FLOPS, st.booleans())))
def test_only_what_is_not_cached_takes_time(graphs: list[tuple[float, bool]]) -> None:
    """The second job with a warm cache is modelled without compile time."""
    ledger = [CompiledGraph(flops, cached) for flops, cached in graphs]
    expected = sum(of_size(flops).seconds for flops, cached in graphs if not cached)
    assert compile_time.of_graphs(ledger).seconds == pytest.approx(expected)
    warm = [CompiledGraph(flops, cached=True) for flops, _ in graphs]
    assert compile_time.of_graphs(warm) == compile_time.NOTHING


def test_a_negative_size_is_no_graph() -> None:
    """Said, not clamped."""
    with pytest.raises(InvalidInput, match="-1"):
        of_size(-1)


def test_the_fixed_cost_says_how_many_graphs_were_cached() -> None:
    """And a GPU compiles nothing."""
    ledger = (CompiledGraph(4e12), CompiledGraph(0.0, cached=True))
    cost = fixed_costs.compilation(TRN1, 2, evaluates=True, cached=False, ledger=ledger)
    assert cost.seconds == of_size(4e12).seconds
    assert cost.basis.startswith("1 of 2 graphs cached; each other at 3 s a graph, 15 ms an operation")
    warm = tuple(CompiledGraph(graph.flops, cached=True) for graph in ledger)
    cost = fixed_costs.compilation(TRN1, 2, evaluates=True, cached=False, ledger=warm)
    assert (cost.seconds, cost.high_s, cost.basis) == (0.0, 0.0, "2 of 2 graphs cached")
    assert fixed_costs.compilation(P4D, 2, evaluates=True, cached=False, ledger=ledger).seconds == 0.0


def modelled(counters: dict[str, Any]) -> fixed_costs.FixedCost:
    """The compile cost of a job on trn1."""
    workload = Workload.from_counters(counters)
    comparison = compare(workload, ["ml.trn1.32xlarge"], full_scale=FullScale(train_samples=1000))
    return next(cost for cost in comparison.estimates[0].fixed if cost.name == "compile")


def test_the_ledger_of_the_counters_decides(counters: Counters) -> None:
    """Graphs that the ledger left out are small ones; counters without a ledger get the older assumption."""
    ledger: list[dict[str, Any]] = [
        {"graph": "a", "flops": {"fp32": 1e12, "bf16": 3e12}, "cached": False},
        {"graph": "b", "flops": None, "cached": True},
        {"graph": "c", "flops": {}, "cached": None},
    ]
    graphs = {"count": 5, "cached": 2, "ledger": ledger, "ledger_left_out": 2, "compile_seconds": 1.0}
    cold = modelled(counters(graphs=graphs))
    assert cold.seconds == pytest.approx(of_size(4e12).seconds + 2 * of_size(0).seconds)
    assert cold.basis.startswith("2 of 5 graphs cached")
    warm = [{**entry, "cached": True} for entry in ledger]
    assert modelled(counters(graphs={**graphs, "cached": 5, "ledger": warm})).seconds == 0
    assert "assumed" in modelled(counters()).basis


def test_what_collectives_cut_here_compiles_as_one(counters: Counters) -> None:
    """45 pieces of a step are one graph to neuronx-cc: its base once, and the FLOPs of all."""
    ledger: list[dict[str, Any]] = [
        {"graph": f"{piece}", "flops": {"fp32": 1e11}, "cached": False} for piece in range(45)
    ]
    graphs = {
        "count": 45,
        "ledger": ledger,
        "compile_seconds": 1.0,
        "uncut": [{"flops": 4.5e12, "cached": False}],
    }
    assert modelled(counters(graphs=graphs)).seconds == of_size(4.5e12).seconds
    more = modelled(counters(graphs={**graphs, "uncut_left_out": 2})).seconds
    assert more == of_size(4.5e12).seconds + 2 * of_size(0).seconds
