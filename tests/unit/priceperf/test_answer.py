"""Whether one can say who is cheapest: what decides, what never does, and figures that stand on their own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.split_job import split_counters
from windtunnel.priceperf import (
    CountedWorkload,
    FullScale,
    InvalidInput,
    PerDevice,
    PriceBook,
    StepWork,
    Workload,
    answers,
    by_offering,
    compare,
)
from windtunnel.priceperf.model.compile_time import CompiledGraph
from windtunnel.priceperf.workload.cluster import BATCH_RULES

TRN1, SMALL, P4D = "ml.trn1.32xlarge", "ml.trn1.2xlarge", "ml.p4d.24xlarge"
OTHERS = ("ml.trn1n.32xlarge", "trn1.32xlarge", "p4d.24xlarge", "ml.p4de.24xlarge", SMALL, P4D, TRN1)
LONG = FullScale(30_000_000)
SHORT = FullScale(1_000_000)
"""Of which compiling can be as much as trn1 costs less."""


def rehearsed(
    asked: str = TRN1, flops: float = 4e12, parameters: float | None = 3e8, compiled: float = 0.0, **more: Any
) -> CountedWorkload:
    """Counts as of a rehearsal; by default in the middle of the calibrated range on both chips."""
    settings = {"samples": 8.0, "bytes_moved": 6e10, **more}
    graphs = (CompiledGraph(compiled),) if compiled else ()
    step = StepWork(settings["samples"], {"fp32": flops}, settings["bytes_moved"])
    return CountedWorkload(asked, 1, step, 256, None, 0, parameters, len(graphs), graphs)


workloads = st.builds(
    rehearsed,
    asked=st.sampled_from([TRN1, SMALL]),
    flops=st.floats(1e6, 1e15),
    parameters=st.one_of(st.none(), st.floats(1e3, 1e11)),
    compiled=st.sampled_from([0.0, 1e9, 1e13, 1e17]),
    samples=st.floats(1, 4096),
    bytes_moved=st.floats(1e3, 1e13),
)
sizes = st.builds(
    FullScale,
    st.integers(1, 10**12),
    epochs=st.integers(1, 1000),
    evaluation_samples=st.integers(0, 10**9),
    evaluation_split=st.booleans(),
)


@given(
    workload=workloads,
    size=sizes,
    beside=st.lists(st.sampled_from(OTHERS), max_size=4, unique=True),
    rule=st.sampled_from(["rehearsed", "per_device", 4096, PerDevice(32)]),
)
def test_no_figure_depends_on_what_stands_beside_it(
    workload: CountedWorkload, size: FullScale, beside: list[str], rule: Any
) -> None:
    """Any instance alone has the batch, the seconds and the costs that it has in any list."""
    if isinstance(rule, int | PerDevice):
        workload = rehearsed(
            workload.instance_type, samples=1.0
        )  # fewer on a core than rehearsed are refused
    together = compare(workload, [P4D, *(name for name in beside if name != P4D)], size, batch=rule)
    for item in together.estimates:
        assert compare(workload, [item.name], size, batch=rule).estimates == (item,)


def test_a_description_does_not_depend_on_it_either() -> None:
    """Also where its global batch follows from the instance."""
    job = Workload.transformer("BERT-Large", microbatch=16, sequence_length=128)
    for rule in ("rehearsed", "per_device", 2048, PerDevice(16)):
        found = compare(job, [SMALL, TRN1, P4D], LONG, batch=rule).estimates
        assert found == tuple(compare(job, [item.name], LONG, batch=rule).estimates[0] for item in found)


@pytest.mark.parametrize("job", [rehearsed(TRN1), Workload.from_counters(split_counters())])
def test_a_number_beside_a_name_is_as_many_of_each(job: Workload) -> None:
    """``trn1=4 p4d=4`` and ``--nodes 4`` ask for the same; ``global`` alone is one batch for any number."""
    names, size = [TRN1, P4D, "ml.p5.48xlarge"], FullScale(30_000_000)
    for rule in ("rehearsed", "per_device", 2048):
        beside = compare(job, [(name, 4) for name in names], size, batch=rule)
        assert beside.estimates == compare(job, names, size, batch=rule, instance_count=4).estimates
    one, two = compare(job, [(TRN1, 1), (P4D, 2)], size, batch="global").estimates
    assert one.global_batch == two.global_batch


@pytest.mark.parametrize("full_scale", [None, FullScale(3_600_000), FullScale(10**9)])
def test_two_lists_give_the_same_p4d_and_the_same_winner(counters: Any, full_scale: FullScale | None) -> None:
    """The job that asked for ml.trn1.2xlarge, with the large instance in the list and without it."""
    workload = Workload.from_counters(counters(instance_type=SMALL, instance_cores=2))
    default = compare(workload, [SMALL, TRN1, P4D], full_scale)
    short = compare(workload, [SMALL, P4D], full_scale)
    assert default.estimates[-1] == short.estimates[-1]
    winners = [
        None if (best := answers(item)[-1].winner) is None else item.estimates[best].name
        for item in (default, short)
    ]
    assert winners[0] == winners[1]


def test_who_gets_which_batch(counters: Any) -> None:
    """8 rehearsed on a core of trn1.2xlarge: its 2 cores have 16, and 8 GPUs no fewer than 8 each."""
    workload = Workload.from_counters(counters(instance_type=SMALL, instance_cores=2))

    def batches(rule: Any, job: Workload = workload) -> list[float]:
        return [item.global_batch for item in compare(job, [SMALL, TRN1, P4D], LONG, batch=rule).estimates]

    assert batches("rehearsed") == [16, 256, 64]
    assert batches("per_device") == [16, 256, 64]
    assert batches("rehearsed", Workload.from_counters(counters())) == [16, 256, 256]
    assert batches("global", Workload.from_counters(counters())) == [256, 256, 256]
    assert batches(512) == batches(512.0) == [512, 512, 512]
    assert batches(PerDevice(32)) == [64, 1024, 256]
    assert batches("global") == [16, 16]  # not a sample for each core of the large one
    found = compare(workload, [SMALL, TRN1, P4D], LONG, batch="global")
    ((name, _, why),) = found.not_possible
    assert (name, "less than one sample for each of the 32 workers" in why) == (TRN1, True)
    with pytest.raises(InvalidInput, match="less than one sample for each of the 32 workers"):
        compare(workload, [TRN1], LONG, batch="global")
    for wrong in (0, -1, 2.5, True, float("nan"), "many", None, 10**400):
        with pytest.raises(InvalidInput, match="batch must be"):
            batches(wrong)
    with pytest.raises(InvalidInput, match="a batch a device must be a whole number"):
        PerDevice(0)
    assert set(BATCH_RULES) == {"rehearsed", "global", "per_device"}


@given(workload=workloads, size=sizes)
@settings(max_examples=60)
def test_no_verdict_outside_the_calibrated_range(workload: CountedWorkload, size: FullScale) -> None:
    """Neither an answer nor a clear decision nor a winner between two, wherever one of them lies outside."""
    comparison = compare(workload, [SMALL, TRN1, P4D], size)
    outside = [item for item in comparison.estimates if not item.range_check.inside]
    for found in answers(comparison):
        if outside:
            assert found.winner is None and found.obstacle in ("outside", "assumed")
            assert found.probability is None and not found.clear and not found.decided.clear
    for verdict in comparison.verdicts:
        if verdict.challenger in outside or verdict.baseline in outside:
            assert verdict.winner is None


@pytest.mark.parametrize(
    ("job", "size", "obstacle"),
    [
        (rehearsed(), LONG, None),
        (rehearsed(), FullScale(100), "too small"),
        (rehearsed(parameters=1e6), LONG, "outside"),
        (rehearsed(compiled=1e16), SHORT, "compiling"),
    ],
)
def test_of_two_there_is_a_cheaper_one_only_where_there_is_an_answer(
    job: CountedWorkload, size: FullScale, obstacle: str | None
) -> None:
    """Compile time and assumed set-up decide nothing there either."""
    verdicts = compare(job, [TRN1, P4D], size).verdicts
    found = {verdict.obstacle for verdict in verdicts}
    assert obstacle in found and (obstacle not in ("outside", "too small") or found == {obstacle})
    for verdict in verdicts:
        assert (verdict.winner is None) == (verdict.obstacle is not None)


def test_2400_times_below_the_range_nothing_is_firm() -> None:
    """The demo's size, over all reviews: figures in dollars, and no verdict."""
    small = rehearsed(SMALL, flops=4e12 / 2400, parameters=1e6, bytes_moved=1e8)
    comparison = compare(small, [SMALL, TRN1, P4D], FullScale(3_600_000))
    found = answers(comparison)[-1]
    assert found.obstacle in ("outside", "assumed") and found.winner is None
    assert all(cost is not None and cost.usd > 0 for cost in found.whole.costs)


def test_in_the_range_there_is_a_winner_with_its_probability() -> None:
    """And it is clear only from 90 % on."""
    found = answers(compare(rehearsed(), [TRN1, P4D], LONG))[-1]
    assert found.obstacle is None and found.winner is not None
    assert 0 < (found.probability or 0) <= 1
    assert found.clear == ((found.probability or 0) >= 0.9)


@given(workload=workloads, size=sizes)
@settings(max_examples=60)
def test_compile_time_never_decides(workload: CountedWorkload, size: FullScale) -> None:
    """The answer is that of the same job with all graphs in a cache: the cheapest, and whether that is clear."""
    cached = FullScale(**{**vars(size), "compile_cached": True})
    for found, bare in zip(
        answers(compare(workload, [TRN1, P4D], size)),
        answers(compare(workload, [TRN1, P4D], cached)),
        strict=True,
    ):
        assert (found.decided.cheapest, found.decided.clear) == (bare.decided.cheapest, bare.decided.clear)
        assert (found.winner is None) == (bare.winner is None)


def test_an_extrapolated_compile_time_turns_nothing() -> None:
    """As much as there can be on trn1: the whole bill would be p4d's, the answer is not."""
    without = answers(compare(rehearsed(), [TRN1, P4D], SHORT))[0]
    hours = answers(compare(rehearsed(compiled=1e16), [TRN1, P4D], SHORT))[0]
    assert without.winner == 0 and hours.whole.cheapest == 1
    assert hours.without_compile and hours.winner == 0 and hours.probability == without.probability


def test_why_there_is_no_answer() -> None:
    """Each obstacle, and which estimates are it."""
    giant = Workload.transformer("GPT3-175B", microbatch=1, sequence_length=2048, tensor_parallel=8)
    (unfit, *_) = answers(compare(giant, [TRN1, P4D], LONG))
    assert (unfit.obstacle, unfit.hindered, unfit.winner) == ("does not fit", (0, 1), None)
    (alone, *_) = answers(compare(rehearsed(), [TRN1], LONG))
    assert (alone.obstacle, alone.hindered) == ("one instance", (0,))
    (tiny, *_) = answers(compare(rehearsed(), [TRN1, P4D], FullScale(256)))
    assert (tiny.obstacle, tiny.hindered) == ("assumed", (0, 1))
    assert answers(compare(rehearsed(), ["ml.trn2.48xlarge"], LONG)) == ()


def test_capacity_blocks_are_an_offering_with_their_own_order() -> None:
    """As AWS's page had them: p4d below trn1, the other way round than SageMaker's on-demand of 2022."""
    book = PriceBook()
    p4d, trn1 = (
        book.price(name, offering="EC2 Capacity Block") for name in ("ml.p4d.24xlarge", "trn1.32xlarge")
    )
    assert (p4d.usd_per_hour, p4d.region, p4d.status) == (14.75, "us-east-2", "seen")
    assert (trn1.usd_per_hour, trn1.region, str(trn1.effective_from)) == (
        15.49,
        "ap-southeast-4",
        "2024-10-01",
    )
    assert "Capacity Blocks page" in trn1.source
    assert book.price("p4d.24xlarge").usd_per_hour == 21.957642  # on-demand, as the name says
    comparison = compare(rehearsed(), [TRN1, P4D], LONG)
    found = dict(by_offering(comparison.estimates, book))
    assert list(found) == ["SageMaker training on-demand", "EC2 on-demand", "EC2 Capacity Block"]
    for offering, answer in found.items():
        for item, cost in zip(comparison.estimates, answer.whole.costs, strict=True):
            assert cost == item.cost(book.price(item.name, offering=offering))


def test_evaluation_that_each_worker_repeats(counters: Any) -> None:
    """A loader without a sampler: as many steps as one worker needs for all samples."""
    workload = Workload.from_counters(counters())

    def evaluated(**size: Any) -> list[float]:
        full = FullScale(3_600_000, evaluation_samples=1_000_000, **size)
        return [
            item.fixed_cost("evaluation").seconds for item in compare(workload, [TRN1, P4D], full).estimates
        ]

    for shared, repeated, workers in zip(
        evaluated(), evaluated(evaluation_split=False), (32, 8), strict=True
    ):
        assert repeated / shared == pytest.approx(workers)
    with pytest.raises(InvalidInput, match="evaluation_split must be True, False or None, not 1"):
        FullScale(1, evaluation_split=1)  # type: ignore[arg-type]


def test_a_last_batch_of_a_few_samples_is_not_a_whole_step(counters: Any) -> None:
    """10 samples more than a batch of 10,240 cost little more."""
    workload = Workload.from_counters(counters())
    one, more = (
        compare(workload, [P4D], FullScale(samples), batch=10_240).estimates[0]
        for samples in (10_240, 10_250)
    )
    assert (one.steps, more.steps) == (1, 2)
    assert one.train_s < more.train_s < 1.01 * one.train_s
    few = compare(workload, [P4D], FullScale(100, epochs=50), batch=10_240).estimates[0]
    assert few.train_s == pytest.approx(50 * one.train_s)  # a batch with fewer samples is a step all the same


def test_compile_time_changes_no_probability() -> None:
    """However long the job is, by which its part of the bill changes."""
    job = Workload.transformer("Llama-3.1-8B", sequence_length=2048, global_batch=128, lora_rank=16)
    for samples in (15_000, 18_000, 30_000, 400_000):
        found, bare = (
            answers(compare(job, [TRN1, "ml.p5.48xlarge"], FullScale(samples, compile_cached=cached)))[-1]
            for cached in (False, True)
        )
        assert found.decided.probabilities == pytest.approx(bare.decided.probabilities, abs=0.01)
