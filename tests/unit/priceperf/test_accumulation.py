"""Several passes for one optimizer step."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.bert_large import bert_large_counters
from windtunnel.priceperf import (
    AUTO_CAST,
    Cluster,
    CountedWorkload,
    InvalidCounters,
    Run,
    calibration_of,
    instance_type,
    scaling,
    training_step,
)
from windtunnel.priceperf.model.training_settings import OPTIMIZER_BYTES
from windtunnel.priceperf.published.bert_scaling import PUBLISHED, held, is_bert_large, sequence_length

TRN1 = instance_type("ml.trn1.32xlarge")


def of(passes: int, nodes: int = 4) -> CountedWorkload:
    return CountedWorkload.from_counters(bert_large_counters(passes, nodes))


def step_s(workload: CountedWorkload, nodes: int, batch: float) -> float:
    return workload.modelled(Run(Cluster(TRN1, nodes), batch, AUTO_CAST), workload.full_scale()).step.total_s


@pytest.mark.parametrize("nodes", [1, 4, 16, 64])
def test_however_often_it_was_rehearsed_the_same_is_modelled(nodes: int) -> None:
    """A batch takes as long from a rehearsal with two passes of an optimizer step as from one with thirty-two."""
    batch = 16 * 32 * 64
    two, many = step_s(of(2), nodes, batch), step_s(of(32), nodes, batch)
    assert two == pytest.approx(many, rel=1e-6)


def test_each_pass_but_the_last_is_without_reduction_and_optimizer() -> None:
    """So twice the passes take less than twice as long, and all passes but the last take the same."""
    workload, workers = of(8), 16 * 32 * 4
    one, two, three = (step_s(workload, 4, 16 * 32 * 4 * passes) for passes in (1, 2, 3))
    assert workers > 0
    assert one < two < 2 * one
    assert three - two == pytest.approx(two - one, rel=0.02)  # the second is the first that reads a gradient


def test_the_batch_of_a_job_has_all_passes() -> None:
    """It is what its optimizer steps by; a pass keeps its sequences."""
    workload = of(8)
    assert (workload.passes, workload.step.samples) == (8, 16)
    assert workload.batch(Cluster(TRN1, 4), "rehearsed", 4) == 16 * 32 * 4 * 8
    assert of(1).passes == 1


def test_a_rehearsal_that_ended_within_an_accumulation_tells_the_same() -> None:
    """Five passes more than its three updates had: neither the script's batch nor the time of a step is another."""
    counters = bert_large_counters(8)
    train, more = counters["train"], 1 + 5 / 24
    optimizer = counters["parameters"]["count"] * OPTIMIZER_BYTES
    cut = {
        "steps": 29,
        "samples": round(train["samples"] * more),
        "flops": {"bf16": train["flops"]["bf16"] * more},
        "bytes_accessed": (train["bytes_accessed"] - 3 * optimizer) * more + 3 * optimizer,
        "work": {
            **train["work"],
            "products": [[*each[:5], each[5] * more] for each in train["work"]["products"]],
            "elementwise": {
                "activations": {
                    "fused_bytes": train["work"]["elementwise"]["activations"]["fused_bytes"] * more
                }
            },
        },
        "updates": {**train["updates"], "passes": 8},
    }
    workload = CountedWorkload.from_counters({**counters, "train": {**train, **cut}})
    assert workload.passes == 8
    batch = 16 * 32 * 4 * 8
    assert workload.batch(Cluster(TRN1, 4), "rehearsed", 4) == batch
    assert step_s(workload, 4, batch) == pytest.approx(step_s(of(8), 4, batch), rel=1e-6)


def test_more_steps_of_the_optimizer_than_passes_are_one_a_pass() -> None:
    """No counter has them; in a damaged file they are no division by nothing."""
    counters = bert_large_counters(8)
    train = counters["train"]
    told = {"launches": 1000.0, "least_trace_seconds": 0.1, "updates": {"steps": 3 * train["steps"]}}
    workload = CountedWorkload.from_counters({**counters, "train": {**train, **told}})
    assert workload.passes == 1 and workload.accumulation is None


def test_a_short_rehearsal_that_came_to_no_optimizer_is_not_modelled() -> None:
    """Of a longer accumulation: it would have scaled without any loss, as nothing was reduced."""
    counters = bert_large_counters(39, updates=1)
    cut = {**counters["train"], "collectives": {}, "updates": None}
    short = {"rehearsed_steps": 3, "ended_early": True, "loaders": []}
    with pytest.raises(
        InvalidCounters, match=r"no optimizer stepped in the 39 passes .* of 3 steps.*REHEARSE_STEPS"
    ):
        CountedWorkload.from_counters({**counters, "parameters": None, "train": cut, "input": short})
    one = {"parameters": None, "train": {**cut, "steps": 1}, "input": {**short, "rehearsed_steps": 1}}
    with pytest.raises(InvalidCounters, match="in the pass of this short rehearsal of a step: neither"):
        CountedWorkload.from_counters({**counters, **one})
    beginning = {**cut, "collectives": {"all_reduce": {"count": 2, "bytes": 80_000_000}}}  # DDP's own, once
    with pytest.raises(InvalidCounters, match="no optimizer stepped"):
        CountedWorkload.from_counters({**counters, "parameters": None, "train": beginning, "input": short})
    by_hand = {**cut, "collectives": {"all_reduce": {"count": 39, "bytes": 39 * 80_000_000}}}
    own = CountedWorkload.from_counters({**counters, "parameters": None, "train": by_hand, "input": short})
    assert own.parameters == 20_000_000  # no optimizer of torch's, and its gradients reduced in each step
    assert CountedWorkload.from_counters({**counters, "input": short}).passes == 39


def test_strong_scaling_accumulates_less_on_more_nodes() -> None:
    """The job's own batch, whatever it was rehearsed on; each worker's passes keep their size until one is left."""
    workload = of(8)
    table = scaling(workload, "trn1.32xlarge", global_batch=16 * 32 * 4 * 8)
    assert [row.global_batch for row in table.rows] == [16384] * 7
    flops = [row.estimate.step.compute_s for row in table.rows if row.estimate]
    assert flops[0] == pytest.approx(32 * flops[5], rel=1e-6)
    efficiency = [row.efficiency for row in table.rows if row.efficiency is not None]
    assert efficiency == sorted(efficiency, reverse=True)


def test_a_job_that_accumulates_nothing_can() -> None:
    """On the cluster that it ran on it takes as long as before; on fewer nodes it goes through its batch in passes."""
    workload = of(1)
    assert workload.accumulating().accumulation is not None
    assert step_s(workload.accumulating(), 4, 2048) == pytest.approx(step_s(workload, 4, 2048), rel=1e-9)
    assert step_s(workload.accumulating(), 1, 2048) == pytest.approx(step_s(of(4), 1, 2048), rel=0.02)
    assert of(8).accumulating() == of(8)


@pytest.mark.parametrize(("nodes", "batch"), [(1, 16384), (4, 16384), (16, 65536), (16, 262144)])
def test_what_awss_script_counts_is_predicted_as_its_dimensions_are(nodes: int, batch: int) -> None:
    """dp_bert_large_hf_pretrain_hdf5.py of aws-neuron-samples, unmodified, in bf16 with two of BERT-Large's layers, was
    rehearsed on two cores with two passes a step: its counters predict 2 to 32 passes on 1 to 16 nodes within 5 %.
    """
    counters = json.loads(Path(__file__).with_name("recorded_bert.json").read_text())
    workload = CountedWorkload.from_counters(counters)
    assert (workload.passes, workload.step.samples, sequence_length(workload)) == (2, 16, 128)
    bert = PUBLISHED[0].row.training
    described = replace(
        bert,
        architecture=replace(bert.architecture, layers=2),
        parameters=workload.parameters or 0.0,
        data_parallel=32 * nodes,
        global_batch=batch,
    )
    expected = training_step(described, TRN1, calibration_of(TRN1).constants, nodes).total_s
    assert step_s(workload, nodes, batch) == pytest.approx(expected, rel=0.05)


def test_no_published_figure_took_part_in_its_own_prediction() -> None:
    """Described or counted, one node or sixteen: within 15 % of what AWS printed, without any figure of BERT-Large."""
    workload = of(8)
    assert is_bert_large(workload)
    assert sequence_length(workload) == 128
    found = held(workload)
    assert [round(item.published.published, 1) for item in found] == [
        3705.1, 3890.7, 53655.8, 48414.0, 41242.0, 26474.4, 33095.9, 7522.0,
    ]  # fmt: skip
    assert all(abs(item.described_error) < 0.15 for item in found)
    counted = [item for item in found if item.counted is not None]
    assert [item.published.format for item in counted] == ["bf16"] * 5
    assert all(abs(item.counted_error or 0) < 0.15 for item in counted)
    assert not any(
        item.counted for item in held(CountedWorkload.from_counters(bert_large_counters(samples=4)))
    )
