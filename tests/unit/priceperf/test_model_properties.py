"""Whatever the job and the cluster: the model behaves like physics, and money like money."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import (
    ARCHITECTURES,
    AUTO_CAST,
    CATALOG,
    Cluster,
    Cost,
    CountedWorkload,
    DescribedWorkload,
    Estimate,
    FullScale,
    InvalidInput,
    Price,
    PriceBook,
    Run,
    StepWork,
    Workload,
    compare,
    decisions,
    estimate,
    scaling,
)
from windtunnel.priceperf.calibration.cluster_sizes import own_part
from windtunnel.priceperf.model.collectives import Collective
from windtunnel.priceperf.model.engines import Product
from windtunnel.priceperf.model.fixed_costs import TOKENISE_S
from windtunnel.priceperf.model.fused_attention import Fused
from windtunnel.priceperf.model.host_tracing import HostWork
from windtunnel.priceperf.model.memory_need import crowding
from windtunnel.priceperf.money.decision import cheapest_probabilities, decide

SLACK = 1 + 1e-9
INSTANCES = st.sampled_from(sorted(name for name, instance in CATALOG.items() if instance.calibration))
SIZE = FullScale(1_000_000, 2, 10_000, dataset_gib=3.0)
DAY = date(2025, 6, 1)


@st.composite
def described(draw: st.DrawFn) -> DescribedWorkload:
    """Known transformers, however they are trained."""
    name = draw(st.sampled_from(sorted(ARCHITECTURES)))
    model = ARCHITECTURES[name]
    splits = [tp for tp in (1, 2, 4, 8, 32) if model.attention_heads % tp == 0]
    return Workload.transformer(
        name,
        microbatch=draw(st.integers(1, 32)),
        sequence_length=draw(st.integers(16, 16_384)),
        gradient_accumulation=draw(st.integers(1, 64)),
        tensor_parallel=draw(st.sampled_from(splits)),
        pipeline_parallel=draw(st.sampled_from([1, 2, 4])),
        dtype=draw(st.sampled_from(["bf16", "fp32"])),
        optimizer=draw(st.sampled_from(["adamw", "lamb", "sgd"])),
        recompute=draw(st.sampled_from(["auto", "none", "selective", "full"])),
        zero=draw(st.sampled_from(["none", "optimizer", "full"])),
        attention=draw(st.sampled_from(["auto", "eager", "flash"])),
        lora_rank=draw(st.sampled_from([None, None, 1, 16, 256])),
    )


@st.composite
def counted(draw: st.DrawFn) -> CountedWorkload:
    """Rehearsals of any step."""
    parameters = draw(st.floats(1e3, 1e10))
    dimensions = st.floats(1, 1e5)
    shapes = draw(
        st.lists(
            st.builds(Product, dimensions, dimensions, dimensions, st.floats(0.1, 100), st.booleans()),
            max_size=5,
        )
    )
    flops = {"fp32": draw(st.floats(1e6, 1e15)), "bf16": draw(st.floats(0, 1e15))}
    if shapes:  # counters of this version, which tell each product
        flops = {"fp32": math.fsum(item.flops for item in shapes)}
    step = StepWork(
        draw(st.integers(1, 64)),
        flops,
        draw(st.floats(1e6, 1e12)),
        (Collective("all_reduce", draw(st.floats(1, 1000)), 4 * parameters),),
        products={"fp32": tuple(shapes)} if shapes else {},
        fused_bytes=draw(st.floats(0, 1e12)) if shapes else None,
        fused=Fused(draw(st.floats(0, 1)), draw(st.floats(0, 1))) if shapes else Fused(),
        host=draw(st.none() | st.builds(HostWork, st.floats(0, 10), st.floats(0, 1))),
    )
    return CountedWorkload("ml.trn1.32xlarge", 1, step, 1600, None, 0, parameters, draw(st.integers(1, 20)))


WORKLOADS = st.one_of(described(), counted())
NODES = st.integers(1, 500)


def whole(workload: Workload, count: int) -> int:
    """At least so many instances, so that any parallelism divides their workers, whatever the type."""
    if isinstance(workload, DescribedWorkload):
        return count * (workload.tensor_parallel or 1) * (workload.pipeline_parallel or 1)
    return count


def modelled(workload: Workload, name: str, count: int, batch: float | None = None) -> Estimate:
    """The job on so many instances, with the workload's own batch where none is given."""
    cluster = Cluster(CATALOG[name], count)
    size = workload.batch(cluster, "rehearsed", cluster.count) if batch is None else batch
    precision = workload.precisions(cluster.instance, AUTO_CAST)[0]
    return estimate(workload, Run(cluster, size, precision), SIZE)


def settled(workload: DescribedWorkload, item: Estimate) -> DescribedWorkload:
    """The job with what `described` leaves open as in that estimate."""
    training = item.training
    assert training is not None
    return replace(workload, recompute=training.recompute, attention=training.attention)


@given(workload=described(), name=INSTANCES, count=st.integers(1, 20), times=st.integers(2, 4))
def test_more_flops_of_a_description_never_take_less_time(
    workload: DescribedWorkload, name: str, count: int, times: int
) -> None:
    """More layers, a larger feed-forward network, vocabulary, length, batch: never faster, with the same recomputed.

    What does not fit without recomputing whole layers may be: of very long sequences their rows cost less.
    """
    count = whole(workload, count)
    base = modelled(workload, name, count)
    workload = settled(workload, base)
    model = workload.architecture
    for more in (
        replace(workload, architecture=replace(model, layers=model.layers * times)),
        replace(workload, architecture=replace(model, ffn_hidden_size=model.ffn_hidden_size * times)),
        replace(workload, architecture=replace(model, vocabulary=model.vocabulary * times)),
        replace(workload, sequence_length=workload.sequence_length * times),
        replace(workload, parameters=workload.parameters * times),
    ):
        longer = modelled(more, name, count, base.global_batch)
        assert longer.step.total_s * SLACK >= base.step.total_s
        assert longer.billable_s >= base.billable_s
    larger = modelled(workload, name, count, base.global_batch * times)
    assert larger.step.total_s * SLACK >= base.step.total_s


@given(workload=counted(), name=INSTANCES, count=NODES, times=st.floats(1, 100))
def test_more_flops_of_a_rehearsal_never_take_less_time(
    workload: CountedWorkload, name: str, count: int, times: float
) -> None:
    """Neither more FLOPs nor more bytes nor more samples."""
    base, step = modelled(workload, name, count), workload.step
    for more in (
        replace(
            step,
            flops={dtype: flops * times for dtype, flops in step.flops.items()},
            products={
                dtype: tuple(item._replace(times=item.times * times) for item in products)
                for dtype, products in step.products.items()
            },
        ),
        replace(step, bytes_moved=step.bytes_moved * times),
        replace(step, fused_bytes=None if step.fused_bytes is None else step.fused_bytes * times),
    ):
        assert modelled(replace(workload, step=more), name, count).step.total_s * SLACK >= base.step.total_s
    larger = modelled(workload, name, count, base.global_batch * times)
    assert larger.step.total_s * SLACK >= base.step.total_s


@given(
    workload=WORKLOADS,
    name=INSTANCES,
    count=st.integers(1, 20),
    mode=st.sampled_from(["strong", "weak"]),
    zoom=st.integers(1, 6),
)
def test_doubling_the_nodes_never_more_than_doubles_throughput(
    workload: Workload, name: str, count: int, mode: str, zoom: int
) -> None:
    """Row by row of a scaling table with the same settings, whether the batch divides or not; but for relief of a
    crowded memory.
    """
    start = whole(workload, count)
    if isinstance(workload, DescribedWorkload):
        workload = settled(workload, modelled(workload, name, start))
    counts = [start * 2**power for power in range(zoom)]
    rows = [row for row in scaling(workload, name, counts, mode, SIZE).rows if row.estimate]  # type: ignore[arg-type]
    for once, twice in pairwise(rows):
        training = once.estimate.training if once.estimate else None
        if training is not None and crowding(training, CATALOG[name]):
            continue
        assert once.samples_per_s is not None
        assert twice.samples_per_s is not None
        assert twice.samples_per_s <= 2 * once.samples_per_s * SLACK
        assert (twice.efficiency or 0) <= (once.efficiency or 0) * SLACK


@given(workload=WORKLOADS, name=INSTANCES, count=NODES, price=st.floats(0.01, 1000), times=st.floats(1, 100))
def test_cost_is_linear_in_price(
    workload: Workload, name: str, count: int, price: float, times: float
) -> None:
    """Twice the price is twice the bill and twice both ends of its interval; so are twice the instances' hours."""
    item = modelled(workload, name, whole(workload, count))
    once, more = (item.cost(Price(name, usd, "r", "o", DAY, "seen", "s")) for usd in (price, price * times))
    for end in ("usd", "low_usd", "high_usd"):
        assert getattr(more, end) == pytest.approx(times * getattr(once, end))
    assert once.usd == pytest.approx(price * item.billable_s / 3600 * item.instance_count)
    assert once.low_usd <= once.usd <= once.high_usd


@given(workload=WORKLOADS, name=INSTANCES, count=NODES, times=st.integers(2, 9))
def test_units_hold(workload: Workload, name: str, count: int, times: int) -> None:
    """Seconds scale with samples and epochs, a step is the sum of its parts, throughput is batch over step."""
    count = whole(workload, count)
    item = modelled(workload, name, count)
    cluster = Cluster(CATALOG[name], count)
    run = Run(cluster, item.global_batch, item.precision)
    longer = estimate(workload, run, replace(SIZE, epochs=SIZE.epoch_count * times))
    assert longer.train_s == pytest.approx(times * item.train_s)
    assert longer.billable_s >= item.billable_s
    more = estimate(workload, run, replace(SIZE, train_samples=SIZE.train_samples * times))
    assert abs(more.train_s - times * item.train_s) <= times * SIZE.epoch_count * item.step.total_s * SLACK
    assert more.billable_s >= item.billable_s
    assert item.samples_per_s * item.step.total_s == pytest.approx(item.global_batch)
    assert item.samples_per_core * item.cores == pytest.approx(item.global_batch)
    parts = item.step.parts
    assert min(parts.values()) >= 0
    assert math.fsum(parts.values()) == pytest.approx(item.step.total_s)
    billed = math.fsum(cost.seconds for cost in item.fixed if cost.billed)
    assert item.billable_s == pytest.approx(item.train_s + billed, abs=1)


@given(workload=described(), name=INSTANCES, count=NODES)
def test_a_description_is_split_whole(workload: DescribedWorkload, name: str, count: int) -> None:
    """Workers are used up, the batch is kept, no pass is larger than asked for."""
    item = modelled(workload, name, whole(workload, count))
    training = item.training
    assert training is not None
    assert training.workers == item.cores
    assert training.global_batch == pytest.approx(item.global_batch)
    assert workload.microbatch is not None
    assert training.microbatch <= workload.microbatch * SLACK
    assert training.microbatches == pytest.approx(round(training.microbatches))


def cost(usd: float, down: float, up: float) -> Cost:
    """A cost with its interval as factors."""
    return Cost(Price("x", 1.0, "r", "o", DAY, "seen", "s"), usd, usd / down, usd * up)


COSTS = st.lists(
    st.builds(cost, st.floats(0.01, 1e6), st.floats(1, 3), st.floats(1, 3)), min_size=1, max_size=5
)


@given(costs=COSTS, cheaper=st.floats(0.1, 1))
def test_probabilities_are_probabilities(costs: list[Cost], cheaper: float) -> None:
    """Together 1; what becomes cheaper never becomes less probable to be the cheapest."""
    chances = cheapest_probabilities(costs)
    assert math.fsum(chances) == pytest.approx(1)
    assert all(-1e-12 <= chance <= 1 + 1e-12 for chance in chances)
    first = costs[0]
    cut = replace(
        first, usd=first.usd * cheaper, low_usd=first.low_usd * cheaper, high_usd=first.high_usd * cheaper
    )
    # The grid of quantiles is a hundredth wide at most.
    assert cheapest_probabilities([cut, *costs[1:]])[0] >= chances[0] - 0.01


@given(middle=st.floats(0.01, 1e6), ratio=st.floats(0.3, 3), down=st.floats(1.01, 2), up=st.floats(1.01, 2))
def test_symmetric_costs_have_the_textbook_probability(
    middle: float, ratio: float, down: float, up: float
) -> None:
    """Of two log-normal costs, the normal distribution of the log of their ratio."""
    pair = cost(middle, down, down), cost(middle * ratio, up, up)
    deviation = math.hypot(math.log(down), math.log(up)) / 1.2815515655446004
    expected = 0.5 * math.erfc(-math.log(ratio) / deviation / math.sqrt(2))
    assert cheapest_probabilities(pair)[0] == pytest.approx(expected, abs=0.006)


@given(middle=st.floats(0.01, 1e6), ratio=st.floats(0.3, 3), width=st.floats(1.01, 2))
def test_numbers_of_one_type_share_most_of_their_error(middle: float, ratio: float, width: float) -> None:
    """Of two costs with correlated errors, the same: the shared part cancels in their ratio."""
    pair = cost(middle, width, width), cost(middle * ratio, width, width)
    deviation = math.sqrt(2) * own_part() * math.log(width) / 1.2815515655446004
    expected = 0.5 * math.erfc(-math.log(ratio) / deviation / math.sqrt(2))
    assert cheapest_probabilities(pair, ("trn1", "trn1"))[0] == pytest.approx(expected, abs=0.02)


@given(costs=COSTS, names=st.lists(st.sampled_from("abc"), min_size=5, max_size=5))
def test_shared_errors_leave_probabilities(costs: list[Cost], names: list[str]) -> None:
    """Together 1, in whatever types the costs are; with a type each it is as if none were given."""
    chances = cheapest_probabilities(costs, names[: len(costs)])
    assert math.fsum(chances) == pytest.approx(1)
    assert all(-1e-12 <= chance <= 1 + 1e-12 for chance in chances)
    apart = cheapest_probabilities(costs, [str(index) for index in range(len(costs))])
    assert apart == cheapest_probabilities(costs)


@given(workload=WORKLOADS, count=st.integers(1, 20))
def test_at_the_break_even_price_costs_are_equal(workload: Workload, count: int) -> None:
    """Each instance at its own break-even price costs what the other does."""
    pair = [(name, whole(workload, count)) for name in ("ml.trn1.32xlarge", "ml.p4d.24xlarge")]
    comparison = compare(workload, pair, SIZE)
    for decision in decisions(comparison):
        for index, even in enumerate(decision.break_evens):
            own, other = decision.costs[index], decision.costs[1 - index]
            if not all(item.fits for item in comparison.estimates):
                assert even is None
                continue
            assert even is not None
            assert own is not None
            assert other is not None
            assert even.low_usd_per_hour <= even.usd_per_hour <= even.high_usd_per_hour
            item = comparison.estimates[index]
            price = replace(own.price, usd_per_hour=even.usd_per_hour)
            assert item.cost(price).usd == pytest.approx(other.usd)


def test_one_cost_is_certain_and_none_is_no_answer() -> None:
    """Nothing to choose from is not called a clear answer."""
    assert cheapest_probabilities([cost(1.0, 2, 2)]) == (1.0,)
    nothing = decide(DAY, (), ())
    assert (nothing.cheapest, nothing.probability, nothing.clear) == (None, None, False)


def test_too_few_samples_for_a_cluster_are_named() -> None:
    """The error tells both numbers."""
    job = CountedWorkload("ml.trn1.32xlarge", 1, StepWork(8, {"fp32": 1e12}, 1e9), 80, None, 0, None, 2)
    with pytest.raises(InvalidInput, match=r"global batch of 16 is less than one sample for each of the 32"):
        modelled(job, "ml.trn1.32xlarge", 1, 16)


def test_every_price_is_one_of_the_book() -> None:
    """A comparison makes no price: what has none in the book has no cost."""
    job = Workload.transformer("BERT-Large", microbatch=16, sequence_length=128)
    comparison = compare(job, sorted(CATALOG), SIZE, on=DAY)
    book = {(price.instance_type, price.usd_per_hour) for price in PriceBook()._prices}
    priced = {price.instance_type for price in PriceBook()._prices if price.effective_from <= DAY}
    for (_, costs), item in ((comparison.costs[0], item) for item in comparison.estimates):
        found = costs[comparison.estimates.index(item)]
        assert (found is None) == (item.name not in priced)
        assert found is None or (item.name, found.price.usd_per_hour) in book


def test_what_all_prepare_alike_does_not_blur_the_answer() -> None:
    """The time to tokenise is unknown, and the same on both: it cancels but for the price of its hours."""
    job = Workload.transformer("BERT-Large", microbatch=16, sequence_length=128)
    instances = ["ml.trn1.32xlarge", "ml.p4d.24xlarge"]
    stated = compare(job, instances, replace(SIZE, preparation_s=4e6 * TOKENISE_S.value), on=DAY)
    unsure = compare(job, instances, replace(SIZE, tokenised_samples=4_000_000), on=DAY)
    apart = cheapest_probabilities([cost for cost in unsure.costs[0][1] if cost is not None])
    sure, shared = (decisions(item)[0].probability for item in (stated, unsure))
    assert sure is not None
    assert shared is not None
    assert [item.billable_s for item in stated.estimates] == [item.billable_s for item in unsure.estimates]
    assert abs(shared - sure) < 0.1
    assert max(apart) < shared
    for narrow, wide in zip(stated.verdicts, unsure.verdicts, strict=True):
        assert narrow.saving == pytest.approx(wide.saving, abs=1e-6)
        low, high = narrow.saving_interval
        assert wide.saving_interval[0] <= low + 1e-9
        assert wide.saving_interval[1] >= high - 1e-9
        apart_low = 1 - wide.challenger_cost.high_usd / wide.baseline_cost.low_usd
        assert wide.saving_interval[0] > apart_low
    for item in unsure.estimates:
        known = item.taking("preparation", 100.0)
        assert (known.preparation.low_s, known.preparation.high_s) == (100.0, 100.0)
        rest = item.billable_s - item.preparation.seconds
        assert known.billable_s == pytest.approx(rest + 100.0, abs=1.0)
