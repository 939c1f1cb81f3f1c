"""The search for plans: what it finds could be launched, and nothing that fits is better."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.priceperf import (
    ARCHITECTURES,
    CALIBRATIONS,
    CATALOG,
    Architecture,
    Cluster,
    FullScale,
    InvalidInput,
    NotCalibrated,
    Training,
    UnknownInstance,
    Workload,
    calibration_of,
    compare,
    instance_type,
    training_step,
)
from windtunnel.priceperf.calibration.described_range import most_tokens
from windtunnel.priceperf.calibration.row_reader import PublishedRow
from windtunnel.priceperf.instances import named_instance
from windtunnel.priceperf.model.memory_need import memory_need, usual_attention
from windtunnel.priceperf.money.plan import Plan, Plans, pareto, plans
from windtunnel.priceperf.workload.splits import OpenSplit, divisors, search

SIZE = FullScale(500_000, compile_cached=True)
CALIBRATED = tuple(name for name, entry in CATALOG.items() if entry.calibration)
MODELS = ("BERT-Large", "GPT3-6.7B", "Llama2-7B", "Llama2-70B", "ViT-Base", "MPT-13b")


def job(model: str = "Llama2-7B", length: int = 4096, batch: int = 256, **fixed: Any) -> OpenSplit:
    """An open split of a known model."""
    known = ARCHITECTURES[model]
    return OpenSplit(known, known.parameters, length, batch, **fixed)


def described(plan: Plan) -> tuple[object, ...]:
    """What tells one plan from another."""
    training = plan.training
    return (plan.estimate.name, plan.estimate.instance_count, training, plan.hours, plan.cost)


@settings(max_examples=25)
@given(
    model=st.sampled_from(MODELS),
    length=st.sampled_from((128, 512, 2048, 4096)),
    batch=st.sampled_from((32, 90, 256, 1024, 1440)),
    names=st.lists(st.sampled_from(CALIBRATED), min_size=1, max_size=3, unique=True),
    nodes=st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True),
)
def test_each_plan_could_be_launched(
    model: str, length: int, batch: int, names: list[str], nodes: list[int]
) -> None:
    """It fits the memory, its degrees make the workers, and batch, heads, layers and instances divide."""
    found = plans(job(model, length, batch), names, SIZE, nodes=nodes)
    assert found.candidates >= found.fitting >= len(found.plans)
    for plan in found.plans:
        item, training = plan.estimate, plan.training
        assert memory_need(training, item.instance).fits
        assert item.instance_count in nodes
        assert training.workers == item.cores
        assert item.instance.core_count % training.tensor_parallel == 0
        assert training.architecture.attention_heads % training.tensor_parallel == 0
        layers = training.architecture.layers
        assert 0 in (layers % training.pipeline_parallel, (layers + 2) % training.pipeline_parallel)
        assert training.microbatch * training.microbatches * training.data_parallel == batch
        assert training.microbatch == int(training.microbatch)
        assert training.microbatches >= training.pipeline_parallel
        low, high = plan.hours_interval
        assert low < plan.hours < high
        if plan.cost is not None:
            assert plan.cost.low_usd <= plan.cost.usd <= plan.cost.high_usd


@settings(max_examples=10)
@given(
    name=st.sampled_from(CALIBRATED), nodes=st.sampled_from((1, 2, 4)), batch=st.sampled_from((64, 96, 256))
)
def test_nothing_that_fits_is_faster(name: str, nodes: int, batch: int) -> None:
    """A search without any pruning, over every micro-batch and recomputation, finds no better plan."""
    wanted, cluster = job(batch=batch), Cluster(instance_type(name), nodes)
    instance, constants = cluster.instance, calibration_of(cluster.instance).constants
    found = {
        (one.tensor_parallel, one.pipeline_parallel): seconds for seconds, one in search(wanted, cluster).best
    }
    for (tensor, stages), seconds in found.items():
        copies = cluster.workers // (tensor * stages)
        kinds = ("selective" if tensor > 1 and instance.is_neuron else "none", "full")
        shared: tuple[str, ...] = ("optimizer",) if copies > 1 else ("none",)
        if instance.is_neuron and tensor * stages == 1:
            shared = ("none", "optimizer")
        for microbatch, kind, zero in product(divisors(batch // copies), kinds, shared):
            training = Training(
                wanted.architecture, wanted.parameters, microbatch, batch, 4096, copies, tensor, stages,
                gradient_bytes=4 if instance.is_neuron and zero == "optimizer" else 2, zero=zero, recompute=kind,  # type: ignore[arg-type]
                attention="flash",
            )  # fmt: skip
            assert usual_attention(training.architecture, training.matmul_dtype, instance)[0] == "flash"
            if training.tokens > most_tokens(calibration_of(instance)):
                continue
            if training.microbatches >= stages and memory_need(training, instance).fits:
                assert training_step(training, instance, constants, nodes).total_s >= seconds


def test_the_front_is_not_dominated_and_misses_nothing() -> None:
    """No plan beats one of the front in both; each plan is beaten, or equalled, by one of the front."""
    found = plans(job(), ["trn1", "p4d", "trn1.32xlarge"], SIZE, nodes=range(1, 33))
    priced = [(plan.hours, plan.cost.usd) for plan in found.plans if plan.cost]
    front = [(plan.hours, plan.cost.usd) for plan in found.pareto if plan.cost]
    assert len(front) > 2
    for hours, usd in front:
        assert not any(h <= hours and c <= usd and (h, c) != (hours, usd) for h, c in priced)
    assert all(any(h <= hours and c <= usd for h, c in front) for hours, usd in priced)
    assert pareto(()) == ()


@settings(max_examples=3)
@given(names=st.permutations(["trn1", "p4d", "trn1.32xlarge", "p4d.24xlarge", "ml.trn1n.32xlarge"]))
def test_more_instance_types_never_make_the_best_dearer_or_slower(names: list[str]) -> None:
    """Each type more can only help."""
    cheapest = fastest = math.inf
    for end in range(1, len(names) + 1):
        found = plans(job(), names[:end], SIZE, nodes=(1, 2, 4))
        first = found.cheapest[0].cost
        assert first is not None
        assert first.usd <= cheapest
        assert found.fastest[0].hours <= fastest
        cheapest, fastest = first.usd, found.fastest[0].hours


def test_the_same_question_has_the_same_answer() -> None:
    """Whatever the order of the instance types and numbers."""
    one = plans(job(), ["trn1", "p4d"], SIZE, nodes=(1, 2, 3, 4))
    other = plans(job(), ["p4d", "trn1", "p4d"], SIZE, nodes=(4, 3, 2, 1, 1))
    assert list(map(described, one.plans)) == list(map(described, other.plans))


def limited(deadline: float | None, budget: float | None, nodes: range = range(1, 17)) -> Plans:
    """Plans under limits."""
    return plans(
        job(batch=1024), ["trn1", "p4d"], SIZE, nodes=nodes, deadline_hours=deadline, budget_usd=budget
    )


def test_deadline_and_budget_are_kept() -> None:
    """All that keeps both is found, nothing else; the lists are in order."""
    free = limited(None, None)
    middle = free.plans[len(free.plans) // 2]
    assert middle.cost is not None
    found = limited(middle.hours, middle.cost.usd)
    keep = [
        plan
        for plan in free.plans
        if plan.cost is not None and plan.hours <= middle.hours and plan.cost.usd <= middle.cost.usd
    ]
    assert list(map(described, found.within)) == list(map(described, keep))
    assert 0 < len(found.within) < len(found.plans)
    assert found.nearest is None
    assert [plan.hours for plan in found.fastest] == sorted(plan.hours for plan in found.within)
    costs = [plan.cost.usd for plan in found.cheapest if plan.cost]
    assert costs == sorted(costs)
    assert set(map(id, found.pareto)) <= set(map(id, found.within))


def test_what_misses_the_limits_least_is_named() -> None:
    """Where nothing keeps them."""
    found = limited(1.0, 10.0, range(1, 5))
    assert found.within == found.cheapest == found.fastest == found.pareto == ()
    nearest = found.nearest
    assert nearest is not None
    misses = [max(plan.hours / 1.0, plan.cost.usd / 10.0) for plan in found.plans if plan.cost]
    assert nearest.cost is not None
    assert max(nearest.hours / 1.0, nearest.cost.usd / 10.0) == min(misses) > 1


def test_what_a_budget_trains_keeps_it() -> None:
    """The most samples that a deadline and a budget train keep both, and a step more does not."""
    found = limited(5.0, 100.0, range(2, 3))
    plan = found.plans[0]
    most = plan.most_samples(5.0, 100.0)
    assert most % 1024 == 0

    def again(samples: float) -> Plan:
        size = FullScale(int(samples), compile_cached=True)
        return next(
            one
            for one in plans(job(batch=1024), [plan.estimate.name], size, nodes=(2,)).plans
            if one.training == plan.training
        )

    assert again(most - 1024).within(5.0, 100.0)  # whole seconds are billed
    assert not again(most + 1024).within(5.0, 100.0)
    assert plan.most_samples(0.01, None) == 0


@pytest.mark.parametrize(
    ("model", "count"), [("GPT-2", 4), ("GPT-2", 16), ("ViT-Base", 4), ("BERT-Large", 4)]
)
@pytest.mark.parametrize("name", ["ml.trn1.32xlarge", "ml.trn2.48xlarge", "ml.p4d.24xlarge"])
def test_a_comparison_is_no_faster_than_the_fastest_plan(model: str, count: int, name: str) -> None:
    """What it takes where nothing is said of the split, a copy on each worker, is among the plans."""
    dimensions = ARCHITECTURES[model]
    length = dimensions.usual_length
    wanted = OpenSplit(dimensions, dimensions.parameters, length, 1024)
    fastest = min(plan.estimate.step.total_s for plan in plans(wanted, [name], SIZE, nodes=(count,)).plans)
    described = Workload.transformer(model, global_batch=1024)
    (compared,) = compare(described, [(name, count)], SIZE).estimates
    assert fastest <= compared.step.total_s * 1.001


ROWS = {row.config: row for calibration in CALIBRATIONS.values() for row in calibration.rows}


def found_for(row: PublishedRow) -> list[Training]:
    """The best way of each split of a published row's cluster, with its model, sequence and global batch."""
    training = row.training
    open_split = OpenSplit(
        training.architecture, training.parameters, training.sequence_length, int(training.global_batch)
    )
    result = search(open_split, Cluster(instance_type(row.instance_type), row.nodes))
    return [one for _, one in result.best]


@pytest.mark.parametrize(
    ("config", "rank"),
    [
        ("GPT3-6.7B 16n tp8", 1),
        ("GPT3-23B 32n tp8pp4", 2),
        ("GPT3-175B 32n tp32pp8", 5),
        ("Llama2-7B 16n tp8 nxd", 1),
        ("Llama2-70B 32n tp32pp4", 5),
        ("MPT-7b llm-foundry FSDP FlashAttention s2048 bf16 mb12", 1),
    ],
)
def test_published_splits_are_among_the_best(config: str, rank: int) -> None:
    """What AWS (trn1) and MosaicML (A100) chose on a cluster is among the best five of the search there."""
    row = ROWS[config]
    splits = [(one.tensor_parallel, one.pipeline_parallel) for one in found_for(row)]
    assert len(splits) > rank  # so that the best are a choice
    assert (row.training.tensor_parallel, row.training.pipeline_parallel) in splits[:rank]


BLOOM = Architecture(70, 14336, 112, 57344, 14336, 250880, "decoder")
LLAMA_405B = Architecture(126, 16384, 128, 53248, 2048, 128256, "llama")


@pytest.mark.parametrize(
    ("model", "instance", "nodes", "length", "batch", "split"),
    [
        # Of the Neuron performance pages 2.16 and 2.18.
        (ARCHITECTURES["GPT3-46B"], "ml.trn1.32xlarge", 32, 2048, 1024, (8, 8)),
        (ARCHITECTURES["Llama2-13B"], "ml.trn1.32xlarge", 32, 4096, 1024, (8, 4)),
        # Of the configurations of neuronx-distributed and neuronx-distributed-training.
        (ARCHITECTURES["Llama2-70B"], "ml.trn1.32xlarge", 32, 4096, 1024, (32, 8)),
        (ARCHITECTURES["Llama2-70B"], "ml.trn1.32xlarge", 8, 4096, 1024, (8, 16)),
        (ARCHITECTURES["Llama-3.1-8B"], "ml.trn1.32xlarge", 32, 8192, 1024, (32, 1)),
        (ARCHITECTURES["Llama-3.1-70B"], "ml.trn1.32xlarge", 32, 8192, 1024, (32, 8)),
        (LLAMA_405B, "ml.trn1.32xlarge", 64, 8192, 256, (32, 32)),
        # 384 A100s of 80 GB (BLOOM's paper); here on the network of p4de.
        (BLOOM, "ml.p4de.24xlarge", 48, 2048, 2048, (4, 12)),
    ],
)
def test_more_published_splits_are_among_the_best_five(
    model: Architecture, instance: str, nodes: int, length: int, batch: int, split: tuple[int, int]
) -> None:
    """None of these is a row of the calibration."""
    found = search(OpenSplit(model, model.parameters, length, batch), Cluster(instance_type(instance), nodes))
    assert split in [(one.tensor_parallel, one.pipeline_parallel) for _, one in found.best][:5]


@pytest.mark.parametrize(
    "config",
    [
        "ViT-B 1n mb64",
        "MPT-3b llm-foundry FSDP FlashAttention s2048 bf16 mb5",
        "MPT-3b llm-foundry FSDP FlashAttention s1024 bf16 mb10",
    ],
)
def test_published_plans_are_the_best_with_their_micro_batch(config: str) -> None:
    """Of these the search has split and micro-batch alike."""
    row = ROWS[config]
    first = found_for(row)[0]
    published = row.training
    assert (first.tensor_parallel, first.pipeline_parallel, first.microbatch) == (
        published.tensor_parallel,
        published.pipeline_parallel,
        published.microbatch,
    )


def test_what_is_fixed_stays() -> None:
    """Each setting by itself."""
    for name, value in (("tensor_parallel", 4), ("pipeline_parallel", 2), ("microbatch", 2),
                        ("recompute", "full"), ("zero", "full")):  # fmt: skip
        fixed: dict[str, Any] = {name: value}
        found = plans(job(**fixed), ["trn1", "p4d"], SIZE, nodes=(1, 4))
        assert found.plans
        assert {getattr(plan.training, name) for plan in found.plans} == {value}


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"tensor_parallel": 7}, "does not divide the 32 attention heads; 1, 2, 4"),
        ({"pipeline_parallel": 5}, "makes no equal stages of 32 layers, .* 1, 2, 4, 8, 16, 17, 32 do"),
        ({"microbatch": 3}, "does not divide the 256 sequences"),
        ({"batch": 0}, "global_batch must be a whole number"),
        ({"length": True}, "sequence_length must be a whole number"),
        ({"recompute": "some"}, "recompute must be one of none, selective, full"),
    ],
)
def test_what_no_cluster_can_have_is_refused(fixed: dict[str, Any], said: str) -> None:
    """With what is valid."""
    with pytest.raises(InvalidInput, match=said):
        job(**fixed).check()


def test_what_cannot_be_planned_is_named() -> None:
    """Beside what can; alone it is an error. So is a name that is no instance's, and a limit of nothing."""
    plain = [name for name, entry in CATALOG.items() if not entry.calibration]
    found = plans(job(), ["trn1", *plain], SIZE, nodes=(1,))
    reasons = {place.name: place.reason for place in found.places}
    assert reasons["ml.trn1.32xlarge"] is None
    assert all("not calibrated" in str(reasons[name]) for name in plain)
    with pytest.raises(NotCalibrated, match=plain[0]):
        plans(job(), plain, SIZE)
    with pytest.raises(UnknownInstance, match=r"'p4d\.24xlrge'\. Did you mean 'ml\.p4d\.24xlarge'"):
        plans(job(), ["trn1", "p4d.24xlrge"], SIZE)
    for deadline, budget in ((0.0, None), (None, -1.0), (math.inf, None)):
        with pytest.raises(InvalidInput, match="must be above 0"):
            limited(deadline, budget)
    with pytest.raises(InvalidInput, match="at least one instance type"):
        plans(job(), [], SIZE)


def test_instances_without_efa_train_alone() -> None:
    """No plan has several ml.trn1.2xlarge, whose NeuronCores cannot meet on AWS."""
    found = plans(job(batch=64), ["ml.trn1.2xlarge", "ml.trn1.32xlarge"], SIZE)
    assert {plan.estimate.instance_count for plan in found.plans if ".2xlarge" in plan.estimate.name} <= {1}
    alone = plans(job("BERT-Large", 128), ["ml.trn1.2xlarge", "ml.trn1.32xlarge"], SIZE, nodes=[2])
    assert "has no EFA" in str(alone.places[0].reason)
    assert {plan.estimate.name for plan in alone.plans} == {"ml.trn1.32xlarge"}


def test_why_there_is_no_plan_is_said() -> None:
    """Too little memory, or numbers that do not divide."""
    (small,) = plans(job("GPT3-175B", 2048), ["p4d"], SIZE, nodes=(1,)).places
    assert "Nothing fits 1 x ml.p4d.24xlarge" in str(small.reason)
    assert small.candidates > small.fitting == 0
    (odd,) = plans(job(pipeline_parallel=1), ["trn1"], SIZE, nodes=(3, 5)).places
    assert "No split of 256 sequences a step divides 3 to 5 x ml.trn1.32xlarge" in str(odd.reason)
    assert odd.candidates == 0
    (wide,) = plans(job(tensor_parallel=16), ["p4d"], SIZE).places
    assert "stays inside an instance, and 16 does not divide the 8 GPUs" in str(wide.reason)
    (deep,) = plans(job(pipeline_parallel=17), ["trn1"], SIZE, nodes=(1,)).places
    assert "What is fixed of the split does not divide 1 x ml.trn1.32xlarge" in str(deep.reason)
    assert "try a global batch" not in f"{wide.reason} {deep.reason}"


def test_a_family_is_its_largest_type() -> None:
    """Any other name is taken as it is."""
    assert named_instance("trn1") == named_instance("ml.trn1") == "ml.trn1.32xlarge"
    assert named_instance("p4d") == "ml.p4d.24xlarge"
    assert named_instance("trn1.2xlarge") == "trn1.2xlarge"
    assert named_instance("nothing") == "nothing"
