"""A job whose cores share one copy of the model is modelled by the description that its rehearsal showed."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.fakes.split_job import CONFIG, WEIGHTS, split_counters
from windtunnel.priceperf import (
    DescribedWorkload,
    FullScale,
    InvalidCounters,
    InvalidInput,
    Workload,
    compare,
)
from windtunnel.priceperf.model.lora import Lora, LoraTargets
from windtunnel.priceperf.workload.counters import Counters

TRN1, P4D, SMALL = "ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.trn1.2xlarge"


@pytest.mark.parametrize(("tensor", "pipeline"), [(8, 1), (4, 2), (8, 4)])
def test_it_is_the_job_that_one_would_describe(tensor: int, pipeline: int) -> None:
    """The whole instance's copies, the passes, ZeRO-1 and the samples of both epochs; GPUs find their own split."""
    rehearsed = Workload.from_counters(split_counters(tensor, pipeline))
    batch = 64 * 32 // (tensor * pipeline)
    described = Workload.transformer(
        CONFIG,
        microbatch=1,
        sequence_length=4096,
        global_batch=batch,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        zero="optimizer",
        software="neuronx-distributed",
    )
    size = FullScale(5000, epochs=2, sequence_length=4096)
    (ours,), (theirs,) = (compare(job, [TRN1], size).estimates for job in (rehearsed, described))
    assert (ours.step, ours.billable_interval_s) == (theirs.step, theirs.billable_interval_s)
    found = compare(rehearsed, [TRN1, P4D, SMALL])
    assert found.estimates[0] == ours
    assert {item.global_batch for item in found.estimates} == {batch}
    gpu = found.estimates[1].training
    open_ = Workload.transformer(CONFIG, sequence_length=4096, global_batch=batch)
    (free,) = compare(open_, [P4D], size).estimates
    assert gpu is not None and (gpu, found.estimates[1].step) == (free.training, free.step)


def test_its_size_is_what_the_rehearsal_found() -> None:
    """Or what is stated; where neither tells, there is a reason and no answer."""
    job = Workload.from_counters(split_counters())
    assert job.sized(None) == FullScale(5000, 2, 0, sequence_length=4096, evaluation_split=True)
    assert job.sized(FullScale(7)).train_samples == 7
    told = split_counters()
    told["input"]["loaders"][0] |= {"batches": None, "planned": None, "bound": None}
    unknown = Workload.from_counters(told)
    assert "train.py:9" in unknown.unknown_size
    assert unknown.sized(None).train_samples == 192


@pytest.mark.parametrize("targets", get_args(LoraTargets))
def test_adapters_are_those_that_are_trained(targets: LoraTargets) -> None:
    """Their rank is told, where they are follows from how many weights a core trains."""
    model = Workload.transformer(CONFIG, lora_rank=16, lora_targets=targets)
    assert model.lora is not None
    trained = model.lora.weights(model.architecture, 8)
    given = split_counters(count=trained, model=WEIGHTS + 8 * 8 * trained, frozen=WEIGHTS)
    given["parameters"]["split"]["lora_rank"] = 16
    found = Workload.from_counters(given)
    assert isinstance(found, DescribedWorkload) and found.lora == model.lora


def test_a_configuration_may_hold_a_cores_share_of_the_vocabulary() -> None:
    """As optimum-neuron 0.1 leaves it: the modules' weights tell which it is."""
    share = {**CONFIG, "vocab_size": 32000 // 8}
    told, as_it_is = (
        DescribedWorkload.from_counters(split_counters(config=each)) for each in (share, CONFIG)
    )
    assert told == as_it_is


def test_a_model_without_a_vocabulary_has_no_share_of_one() -> None:
    """A vision transformer, which here has other weights than its configuration makes."""
    vit = {"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    with pytest.raises(InvalidCounters, match="its configuration makes"):
        Workload.from_counters(split_counters(config=vit))


def test_a_smaller_model_was_rehearsed_than_is_priced() -> None:
    """Split, batch and samples stay, what is stated is other; elsewhere the split is open still."""
    small = {**CONFIG, "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512}
    told = split_counters(2, config=small, model=None)
    job = Workload.from_counters(told)
    assert isinstance(job, DescribedWorkload)
    whole = job.changed("Llama-2-7B", tensor_parallel=8, global_batch=256)
    as_it_is = Workload.from_counters(split_counters())
    assert whole.sized(None) == as_it_is.sized(None)
    for ours, theirs in zip(
        *(compare(each, [TRN1, P4D]).estimates for each in (whole, as_it_is)), strict=True
    ):
        assert ours.step.total_s == pytest.approx(theirs.step.total_s, rel=1e-3)
    assert (job.changed(gradient_accumulation=8).global_batch, job.changed(lora_rank=8).lora) == (
        None,
        Lora(8),
    )
    (on_gpu,) = compare(job.changed("Llama-2-7B", on_gpu={"zero": "full"}), [P4D]).estimates
    assert on_gpu.training is not None and on_gpu.training.zero == "full"
    with pytest.raises(InvalidInput, match="does not divide the 32 attention heads"):
        job.changed(tensor_parallel=3)
    with pytest.raises(InvalidInput, match="no such model"):
        job.changed("no such model")


def test_its_sequences_are_those_that_were_rehearsed_until_it_is_changed() -> None:
    """Another length in the size of the job would leave its step as it is, so it is refused, with what does it."""
    told = split_counters()
    told["input"]["loaders"].insert(
        0, {**told["input"]["loaders"][0], "sequence_length": 512}
    )  # a loop's first
    job = Workload.from_counters(told)
    assert isinstance(job, DescribedWorkload) and job.sized(job.sized(None)).sequence_length == 4096
    job = Workload.from_counters(split_counters())
    assert isinstance(job, DescribedWorkload)
    with pytest.raises(InvalidInput, match=r"sequences of 4,096 tokens.*changed\(sequence_length=N\)"):
        compare(job, [TRN1], FullScale(5000, sequence_length=8192))
    longer = job.changed(sequence_length=8192)
    assert longer.sized(None) == FullScale(5000, 2, 0, sequence_length=8192, evaluation_split=True)
    (ours,), (theirs,) = (compare(each, [TRN1]).estimates for each in (longer, job))
    assert ours.step.total_s > 1.5 * theirs.step.total_s


@pytest.mark.parametrize(("kept", "optimizer"), [(2, "adamw"), (1, "sgd"), (0, "sgd"), (None, "adamw")])
def test_its_optimizer_is_the_one_whose_state_was_seen(kept: int | None, optimizer: str) -> None:
    """With ZeRO-1 each of the two copies that were rehearsed has half of it."""
    told = split_counters()
    told |= {"world_size": 16, "cores_used": 16, "local_cores": 16}
    if kept is not None:
        sizes = {"fp32": 4 * kept * WEIGHTS / 8 / 2} if kept else {}
        told["parameters"]["dtypes"] = {**told["parameters"]["dtypes"], "optimizer": sizes}
    job = Workload.from_counters(told)
    assert isinstance(job, DescribedWorkload) and job.optimizer == optimizer


def test_half_a_pipeline_is_no_other_model() -> None:
    """Of a pipeline one stage is looked at: its weights are not held against the configuration."""
    Workload.from_counters(split_counters(4, 2, model=3e9))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (split_counters(split=None), "how they share it is not known"),
        (split_counters(cores=16), "how they share it is not known"),
        (split_counters(config=None), "keep no configuration"),
        (
            split_counters(config={**CONFIG, "model_type": "mixtral"}),
            "experts, which cannot be described\\. Described",
        ),
        (split_counters(config={**CONFIG, "hidden_size": "wide"}), "hidden_size of the config"),
        (split_counters(frozen=6e9), "a part of it is not trained"),
        (split_counters(model=47e9), "6,738,149,376 weights, and its modules hold 47,000,000,000"),
        (
            split_counters(config={**CONFIG, "num_attention_heads": 4}),
            "does not divide the 4 attention heads",
        ),
        ({**split_counters(), "input": None}, "its batches hold no sequences"),
    ],
)
def test_what_is_not_known_of_it_is_said(given: dict[str, Any], why: str) -> None:
    """With the command that models it all the same."""
    with pytest.raises(InvalidCounters, match=f"{why}.*windtunnel compare --instances ml.trn1.32xlarge"):
        Workload.from_counters(given)


def test_the_document_is_read_as_it_is_written() -> None:
    """A configuration has numbers below zero, texts and flags."""
    written = Counters.read(split_counters()).to_dict()
    assert written["parameters"]["split"]["config"] == CONFIG
    assert Counters.read(written).to_dict() == written


def test_on_more_instances_each_keeps_its_batch() -> None:
    """As rehearsed is as much a copy; where all workers get the same samples, GPUs have more copies."""
    job = Workload.from_counters(split_counters())  # 4 copies, 64 each
    four = compare(job, [TRN1, P4D], instance_count=4).estimates
    assert [item.global_batch for item in four] == [1024, 1024]
    own, gpus = compare(job, [TRN1, P4D], batch="per_device").estimates
    assert (own.global_batch, gpus.global_batch) == (4 * 64, 8 * 64)
    assert compare(job, [TRN1], batch="global").estimates[0].global_batch == 256


def test_of_an_evaluation_that_no_sampler_shares_out_the_samples_are_those_of_a_copy() -> None:
    """Of a job that ran whole, whose counters have the samples of all copies."""
    for split, samples in ((True, 96), (False, 24)):
        told = split_counters() | {"world_size": 32, "cores_used": 32, "local_cores": 32}
        told["other"] = {**told["train"], "samples": 96}
        evaluation = {"line": "train.py:20", "samples": 1, "passes": 1, "split": split}
        told["input"] = {"loaders": [*told["input"]["loaders"], evaluation]}
        size = Workload.from_counters(told).sized(None)
        assert (size.evaluation_samples, size.evaluation_split) == (samples, split)
