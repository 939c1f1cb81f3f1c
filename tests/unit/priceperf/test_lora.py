"""Adapters (LoRA): what is counted, and how far published rows lie from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import ARCHITECTURES, AUTO_CAST, FullScale, InvalidInput, Run, Workload, estimate
from windtunnel.priceperf.calibration.accuracy import RowCheck, validate_rows
from windtunnel.priceperf.calibration.calibrations import calibration_of
from windtunnel.priceperf.calibration.data_files import table
from windtunnel.priceperf.calibration.row_reader import read_rows
from windtunnel.priceperf.instances import instance_type
from windtunnel.priceperf.model.described_step import forward_step, training_flops, training_step
from windtunnel.priceperf.model.lora import Lora, LoraTargets
from windtunnel.priceperf.model.memory_need import memory_need
from windtunnel.priceperf.model.training_settings import Training
from windtunnel.priceperf.workload.cluster import Cluster

ROOT = Path(__file__).parents[3]
LLAMA = ARCHITECTURES["Llama-3.1-8B"]
MISTRAL = replace(LLAMA, vocabulary=32_000)


@pytest.mark.parametrize(
    ("lora", "printed"),
    [
        # Widely printed by PEFT's print_trainable_parameters() for these models.
        (Lora(16), 41_943_040),
        (Lora(64), 167_772_160),
        (Lora(16, "attention"), 13_631_488),
    ],
)
def test_adapters_have_the_weights_that_peft_prints(lora: Lora, printed: int) -> None:
    """Llama 3 8B, and Mistral 7B, whose layers are alike."""
    assert lora.weights(LLAMA) == lora.weights(MISTRAL) == printed


def test_one_matrix_of_an_adapter_is_whole_on_every_tensor_parallel_worker() -> None:
    """Of query, key, value and up projections the first, of output and down projections the second: as NxD has it."""
    whole = 7 * 4096
    split = 4096 + 2 * 1024 + 4096 + 2 * 14336 + 14336
    of_worker = training(lora=Lora(16), tensor_parallel=8, pipeline_parallel=2).worker_trained
    assert of_worker == 16 * 32 / 2 * (whole + split / 8)


def training(**settings: Any) -> Training:
    """Llama 3.1 8B on one instance."""
    return Training(**{
        "architecture": LLAMA, "parameters": LLAMA.parameters, "microbatch": 1, "global_batch": 32,
        "sequence_length": 4096, "data_parallel": 8, "attention": "flash", **settings,
    })  # fmt: skip


@given(
    st.integers(1, 256),
    st.sampled_from(["attention", "all-linear"]),
    st.sampled_from(["none", "optimizer", "full"]),
    st.sampled_from(["none", "full"]),
    st.sampled_from(["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"]),
)
def test_frozen_weights_save_what_they_do_not_need(
    rank: int, targets: LoraTargets, zero: Any, recompute: Any, name: str
) -> None:
    """Less memory than training them, and less work: products of a weight are two of three."""
    instance = instance_type(name)
    whole = training(zero=zero, recompute=recompute)
    frozen = replace(whole, lora=Lora(rank, targets))
    assert memory_need(frozen, instance).needed_bytes < memory_need(whole, instance).needed_bytes
    assert 2 / 3 < training_flops(frozen) / training_flops(whole) < 1
    constants = calibration_of(instance).constants
    step, more = (
        training_step(each, instance, constants, 1)
        for each in (frozen, replace(frozen, lora=Lora(rank + 1, targets)))
    )
    assert step.compute_s < training_step(whole, instance, constants, 1).compute_s
    assert step.total_s < more.total_s


def test_a_model_that_cannot_be_trained_may_have_adapters() -> None:
    """Llama 2 70B on one p4de: its state is 16 bytes a weight, frozen it is two."""
    cluster = Cluster(instance_type("ml.p4de.24xlarge"), 1)
    uploads = []
    for rank, fits in ((None, False), (16, True)):
        job = Workload.transformer(
            "Llama2-70B", sequence_length=2048, global_batch=64, zero="full", lora_rank=rank
        )
        run = Run(cluster, 64, job.precisions(cluster.instance, AUTO_CAST)[0])
        found = estimate(job, run, FullScale(train_samples=10_000))
        assert found.fits is fits
        uploads.append(found.fixed_cost("upload").seconds)
    assert uploads[1] < 0.01 * uploads[0]  # adapters are what is saved


def test_published_rows_lie_inside_their_interval() -> None:
    """None set a constant. Some set how much wider the interval is; the software of the others lies inside as often."""
    lines = table("published_lora")
    by_software: defaultdict[str, list[RowCheck]] = defaultdict(list)
    for line, check in zip(lines, validate_rows(read_rows(lines)).rows, strict=True):
        by_software[line["stack"]].append(check)
    inside = {name: mean(bool(check.inside) for check in found) for name, found in by_software.items()}
    assert min(inside["Qwen finetune.py"], inside["NeMo AutoModel"], mean(inside.values())) >= 0.75
    plain = by_software["HF Trainer (fms-acceleration benchmark)"]
    error = mean(abs(check.error or 0.0) for check in plain)
    assert error < 0.10
    page = (ROOT / "docs/explanation/figures.md").read_text(encoding="utf-8")
    assert f"| Hugging Face's Trainer | {len(plain)} | {error * 100:.1f} % (" in page
    hits = sum(bool(check.inside) for found in by_software.values() for check in found)
    assert f"\n{hits} lie inside" in page


@pytest.mark.parametrize("name", ["ml.trn1.32xlarge", "ml.p4d.24xlarge"])
def test_an_evaluation_has_a_little_more_to_do_with_adapters(name: str) -> None:
    """They are passed too; that backward passes are shorter makes no difference to it."""
    instance = instance_type(name)
    constants = calibration_of(instance).constants
    seconds = []
    for lora in (None, Lora(16)):
        job = training(lora=lora)
        step = training_step(job, instance, constants, 1)
        seconds.append(forward_step(job, step, instance, constants, 1).total_s)
    assert 1 < seconds[1] / seconds[0] < 1.25


def test_memory_is_no_more_than_published_runs_took() -> None:
    """GB a GPU of the README that Qwen's rows are from, 256 to 8,192 tokens; the page of figures says how much less."""
    took = {
        "Qwen-1.8B": (6.7, 7.4, 8.4, 11.0, 16.2, 21.8),
        "Qwen-7B": (20.1, 20.4, 21.5, 23.8, 29.7, 36.6),
        "Qwen-14B": (34.6, 35.1, 35.3, 37.4, 42.5, 55.2),
        "Qwen-72B": tuple(total / 4 for total in (215.4, 217.7, 222.6, 228.8, 249.0, 289.2)),
    }
    parts: defaultdict[str, list[float]] = defaultdict(list)
    for read in read_rows(table("published_lora")):
        if read.row is not None and read.row.stack == "Qwen finetune.py":
            parts[read.config.split()[0]].append(
                memory_need(read.row.training, read.row.instance).needed_bytes
            )
    shares = [
        needed / 2**30 / gb
        for name, gigabytes in took.items()
        for needed, gb in zip(parts[name], gigabytes, strict=True)
    ]
    page = (ROOT / "docs/explanation/figures.md").read_text(encoding="utf-8")
    assert max(shares) < 1
    assert f"{min(shares) * 100:.0f} to {max(shares) * 100:.0f} % is modelled, since" in page


@pytest.mark.parametrize(
    ("rank", "targets", "found"),
    [
        ("16.0", "All_Linear", Lora(16)),
        ("8", "attention", Lora(8, "attention")),
        ("none", "attention", None),
        ("0", "all-linear", None),
        ("", "", None),
        ("", "attention", "lora_targets says where adapters are"),
    ],
)
def test_a_table_may_say_that_nothing_is_adapted(rank: str, targets: str, found: Lora | str | None) -> None:
    """As people write it; what is no adapter keeps its row out, with the reason."""
    line = {"architecture": "Llama-3.1-8B", "instance_type": "p4de.24xlarge", "microbatch": "1",
            "sequence_length": "4096", "lora_r": rank, "lora_targets": targets}  # fmt: skip
    (read,) = read_rows([line])
    if isinstance(found, str):
        assert read.reason is not None
        assert read.reason.startswith(found)
    else:
        assert read.row is not None
        assert read.row.training.lora == found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lora_rank": 0}, "lora_rank must be a whole number of 1 or more, not 0"),
        ({"lora_rank": 4097}, "lora_rank 4097 is more than the model's hidden size of 4,096"),
        ({"lora_rank": 1.5}, "lora_rank must be a whole number"),
        ({"lora_rank": 8, "lora_targets": "q_proj"}, "lora_targets must be one of attention, all-linear"),
        ({"lora_targets": "attention"}, r"give lora_rank=16 \(--lora-rank 16\) too"),
    ],
)
def test_what_is_no_adapter_is_refused(wrong: dict[str, Any], message: str) -> None:
    """With what is valid."""
    make: Callable[..., Workload] = Workload.transformer
    with pytest.raises(InvalidInput, match=message):
        make("Llama-3.1-8B", sequence_length=2048, **wrong)
