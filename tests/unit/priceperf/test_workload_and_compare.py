"""From counters to money: nothing unread, nothing mixed up, nothing without its interval."""

from __future__ import annotations

import math
from typing import Any

import pytest

from windtunnel.priceperf import (
    AUTO_CAST,
    BF16_AUTOCAST,
    CountedWorkload,
    FullScale,
    InvalidCounters,
    InvalidInput,
    Workload,
    compare,
    instance_type,
)
from windtunnel.priceperf.model.collectives import Collective

PAIR = ("ml.trn1.32xlarge", "ml.p4d.24xlarge")


def test_a_step_is_read_per_core(counters: Any) -> None:
    """Sums over steps become one step; the gradient's bytes tell the parameters."""
    workload = CountedWorkload.from_counters(counters())
    assert workload.step.samples == 8
    assert workload.parameters == pytest.approx(109_482_240)
    assert workload.state_bytes == pytest.approx(109_482_240 * 48)
    assert workload.evaluation_samples == 160


def test_a_larger_batch_scales_activations_and_not_weights(counters: Any) -> None:
    """Four times the batch: four times the FLOPs, the same all-reduce, less than four times the bytes."""
    workload = CountedWorkload.from_counters(counters())
    small, large = workload.at(8), workload.at(32)
    assert large.flops["fp32"] == pytest.approx(4 * small.flops["fp32"])
    assert large.collectives == small.collectives
    assert small.bytes_moved < large.bytes_moved < 4 * small.bytes_moved
    assert small.bytes_moved == pytest.approx(workload.step.bytes_moved)


def test_gathered_payload_does_not_depend_on_the_rehearsed_workers(counters: Any) -> None:
    """A shard of 5 bytes on 2 workers is a whole of 10 on any number."""
    given_counters = counters(steps=1)
    given_counters["train"]["collectives"] = {"all_gather": {"count": 1, "bytes": 5}}
    assert CountedWorkload.from_counters(given_counters).step.collectives == (
        Collective("all_gather", 1.0, 10.0),
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), "x/2", "this version reads 'windtunnel.counters/1'"),
        (("train",), None, "no training step on the device"),
        (("train", "steps"), 0, r"train\.steps must be a number of 1 or more, not 0"),
        (("train", "steps"), True, r"train\.steps must be a number"),
        (("train", "flops"), [], r"train\.flops must be an object"),
        (("train", "flops"), {}, "hold no FLOPs"),
        (("train", "flops"), {"fp32": "many"}, r"train\.flops\.fp32 must be a number"),
        (("train", "bytes_accessed"), float("nan"), r"train\.bytes_accessed must be a number"),
        (("train", "samples_per_step_per_core"), 0, "MpDeviceLoader"),
        (("train", "collectives"), {"all_reduce": {"count": 1}}, r"collectives\.all_reduce\.bytes"),
        (
            ("diagnostics",),
            [{"kind": "step_without_end", "line": "a.py:3", "message": "10 steps. More.", "advice": "Sync."}],
            r"neither its batch nor its time is known: a\.py:3: 10 steps\. Sync\.",
        ),
        (("graphs",), {}, r"graphs\.count must be a number"),
        # A whole part is something else, or a number is none that a float holds.
        (("train",), "x", r"counters\.train"),
        (("other",), "x", r"counters\.other"),
        (("train", "bytes_accessed"), 10**400, r"train\.bytes_accessed"),
        (("world_size",), 1e308, r"counters\.world_size"),
        (("instance_count",), 1e9, r"counters\.instance_count"),
        (("graphs", "count"), 10**400, r"graphs\.count"),
        (("train", "work"), {"products": 5}, r"train\.work\.products"),
        (("instance_type",), "ml.g5.xlarge", "No figures for instance type"),
    ],
)
def test_wrong_counters_name_the_field(
    counters: Any, path: tuple[str, ...], value: Any, message: str
) -> None:
    """The error says which field, what was there and what is valid."""
    broken = counters()
    target = broken
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        Workload.from_counters(broken)


def test_without_a_training_step_it_says_what_ran_all_the_same(counters: Any) -> None:
    """Not that nothing did, where graphs were compiled; and why no step ended, where that was found."""
    found = {**counters(), "train": None}
    count = found["graphs"]["count"]
    assert count
    with pytest.raises(
        InvalidCounters, match=rf"though it ran there \({count} compiled\).* `windtunnel inference`"
    ):
        Workload.from_counters(found)
    grown = {"kind": "growing_graphs", "line": "a.py:3", "message": "It grows: 9. More.", "advice": "Pad."}
    with pytest.raises(InvalidCounters, match=r"had ended when the job did: a\.py:3: It grows: 9\. Pad\."):
        Workload.from_counters({**found, "diagnostics": [grown]})
    with pytest.raises(InvalidCounters, match="move its model to the xla device"):
        Workload.from_counters({**found, "graphs": {**found["graphs"], "count": 0, "ledger": []}})


@pytest.mark.parametrize("train", [None, {"samples_per_step_per_core": 0}])
def test_what_ran_one_by_one_is_said_to_be_why_nothing_was_counted(counters: Any, train: Any) -> None:
    """Not that batches came from no loader: they may have. What was compiled and counted all the same is modelled."""
    found = counters()
    eager = {"kind": "eager_mode", "line": "a.py:3", "message": "One by one. More.", "advice": "Compile it."}
    Workload.from_counters({**found, "diagnostics": [eager]})
    found["train"] = train and {**found["train"], **train}
    with pytest.raises(InvalidCounters, match=r"no step was counted: a\.py:3: One by one\. Compile it\."):
        Workload.from_counters({**found, "diagnostics": [eager]})


@pytest.mark.parametrize(
    "wrong",
    [
        {"train_samples": 0},
        {"train_samples": 1.5},
        {"train_samples": True},
        {"train_samples": 1, "epochs": 0},
        {"train_samples": 1, "dataset_gib": -1.0},
        {"train_samples": 1, "dataset_gib": True},
    ],
)
def test_full_scale_checks_its_numbers(wrong: Any) -> None:
    """The message names the field."""
    with pytest.raises(InvalidInput, match=list(wrong)[-1]):
        FullScale(**wrong)


def test_all_cores_and_the_same_global_batch(counters: Any) -> None:
    """32 cores of 8 samples are 256; 8 GPUs get 32 each, or 8 when asked for the same per worker."""
    workload = CountedWorkload.from_counters(counters())
    trn1, p4d = compare(workload, PAIR, FullScale(3_600_000)).estimates
    assert (trn1.cores, trn1.global_batch, p4d.global_batch, p4d.samples_per_core) == (32, 256, 256, 32)
    assert trn1.steps == p4d.steps == math.ceil(3_600_000 / 256)
    assert compare(workload, PAIR, batch="per_device").estimates[1].global_batch == 64
    assert compare(workload, PAIR, instance_count=2).estimates[1].global_batch == 512


def test_parts_add_up_to_the_bill(counters: Any) -> None:
    """Steps and billed fixed costs are the billable time; the start is not in it."""
    full_scale = FullScale(100_000, 2, 10_000, dataset_gib=2.0, preparation_s=50.0)
    for item in compare(Workload.from_counters(counters()), PAIR, full_scale).estimates:
        billed = sum(cost.seconds for cost in item.fixed if cost.billed)
        assert item.billable_s == math.ceil(round(item.train_s + billed, 3))
        assert [cost.name for cost in item.fixed if not cost.billed] == ["start"]
        low, high = item.billable_interval_s
        assert low < item.billable_s < high


def test_costs_carry_price_and_interval(counters: Any) -> None:
    """One cost an instance and price date; the p4d's falls with its price, trn1's stays."""
    comparison = compare(Workload.from_counters(counters()), PAIR, FullScale(3_600_000))
    (first, early), (second, late) = comparison.costs
    assert (str(first), str(second)) == ("2022-10-10", "2025-06-01")
    assert early[0] is not None
    assert late[0] is not None
    assert early[1] is not None
    assert late[1] is not None
    assert early[0].usd == late[0].usd
    assert late[1].usd / early[1].usd == pytest.approx(25.251286 / 37.69)
    assert all(cost.low_usd < cost.usd < cost.high_usd for cost in (*early, *late) if cost)


def test_verdicts_agree_with_their_intervals(counters: Any) -> None:
    """A winner only where the whole interval is on its side; each setting of the GPU script at each date."""
    verdicts = compare(Workload.from_counters(counters()), PAIR, FullScale(3_600_000)).verdicts
    assert len(verdicts) == 8
    for verdict in verdicts:
        low, high = verdict.saving_interval
        assert low < verdict.saving < high
        inside = verdict.challenger.range_check.inside and verdict.baseline.range_check.inside
        assert (verdict.winner is None) == (low <= 0 <= high or not inside)


def test_a_script_in_bf16_leaves_no_precision_open(counters: Any) -> None:
    """One row a GPU, named so; products take what fp32 ones do in bf16, and no activation is halved twice."""
    autocast, mixed = counters(), counters()
    flops = autocast["train"]["flops"]["fp32"]
    autocast["train"]["flops"] = {"bf16": flops, "fp32": flops / 1e6}
    mixed["train"]["flops"] = {"bf16": flops / 2, "fp32": flops / 2}
    found, fp32 = (compare(Workload.from_counters(given), PAIR) for given in (autocast, counters()))
    assert [item.precision.name for item in found.estimates] == ["bf16", "bf16"]
    assert [item.precision.name for item in found.alternatives] == ["bf16, compiled"]
    assert found.estimates[0].step.total_s == pytest.approx(fp32.estimates[0].step.total_s, rel=1e-4)
    halved = next(item for item in fp32.alternatives if item.precision == BF16_AUTOCAST)
    assert found.estimates[1].step.total_s > halved.step.total_s
    assert len(compare(Workload.from_counters(mixed), PAIR).alternatives) == 3


def test_without_full_scale_the_rehearsal_is_projected(counters: Any) -> None:
    """Exactly the samples that ran, evaluation included."""
    workload = CountedWorkload.from_counters(counters())
    item = compare(workload, ("ml.trn1.2xlarge",)).estimates[0]
    assert item.steps == workload.samples / item.global_batch
    assert {cost.name: cost.seconds for cost in item.fixed}["evaluation"] > 0
    assert item.instance is instance_type("ml.trn1.2xlarge")
    assert item.precision is AUTO_CAST


def test_products_in_fp64_are_told_with_what_to_do(counters: Any) -> None:
    """Counters of an older version have them: there is nothing to model, and the job is no crash."""
    given = counters()
    given["train"]["flops"]["fp64"] = 1e9
    with pytest.raises(InvalidCounters, match=r"in fp64, .*Rehearse again"):
        Workload.from_counters(given)


def test_a_model_split_over_cores_is_not_modelled_as_if_each_had_one(counters: Any) -> None:
    """What is modelled is said, with the job's size: of 32 cores as 16 copies, which a count of steps asks."""
    loader = {"line": "train.py:9", "batches": 50, "samples": 4, "passes": 1, "taken": 3, "trains": True}
    loader |= {"split": True, "sequence_length": 64, "bound": 30, "decides": True}
    rehearsed = {"rehearsed_steps": 3, "loaders": [loader]}
    given = counters(parameters={"count": 5.0, "model": 10.0, "cores": 2}, input=rehearsed)
    with pytest.raises(
        InvalidCounters, match=r"2 cores .* compare .*--full-scale-samples 1920 --epochs 1"
    ) as raised:
        Workload.from_counters(given)
    assert "--tensor-parallel N" in str(raised.value) and "--nodes" not in str(raised.value)
    whole = counters(parameters=given["parameters"], instance_count=4)
    with pytest.raises(InvalidCounters, match=r"--nodes 4 .*--sequence-length N --full-scale-samples N$"):
        Workload.from_counters(whole)


def test_a_collective_without_figures_is_named(counters: Any) -> None:
    """It is not priced as if it were a known one."""
    given_counters = counters()
    given_counters["train"]["collectives"]["all_or_nothing"] = {"count": 1, "bytes": 5}
    with pytest.raises(InvalidCounters, match=r"collectives\.all_or_nothing: no figures.*all_reduce"):
        Workload.from_counters(given_counters)


def test_counters_are_written_as_they_were_read(counters: Any) -> None:
    """What reads them and what writes them knows the same members; what is missing becomes null."""
    from windtunnel.priceperf.workload.counters import Counters

    written = Counters.read(counters()).to_dict()
    assert Counters.read(written).to_dict() == written
    assert {key: written[key] for key in counters() if key not in ("train", "other", "graphs")} == {
        key: value for key, value in counters().items() if key not in ("train", "other", "graphs")
    }
    assert written["train"].items() >= counters()["train"].items()
    assert (written["parameters"], written["diagnostics"]) == (None, None)
