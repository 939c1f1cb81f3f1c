"""What the parts of a described training's time are. That more work takes longer: test_model_properties.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import CALIBRATIONS, InvalidInput, instance_type
from windtunnel.priceperf.calibration.published_rows import rows_of
from windtunnel.priceperf.model.architectures import ARCHITECTURES
from windtunnel.priceperf.model.described_as_counted import product_elements, step_work
from windtunnel.priceperf.model.described_step import training_flops, training_step
from windtunnel.priceperf.model.engines import HALF_SIZE, Product
from windtunnel.priceperf.model.memory_need import activation_bytes, needed_recompute, state_bytes
from windtunnel.priceperf.model.training_settings import Training

TRN1 = instance_type("ml.trn1.32xlarge")
P4D = instance_type("ml.p4d.24xlarge")
LLAMA = ARCHITECTURES["Llama2-7B"]


@given(scale=st.integers(1, 1000), size=st.integers(1, 100_000))
def test_the_curve_of_size_rises_to_the_peak(scale: int, size: int) -> None:
    """A larger product never costs more a FLOP, and one of `HALF_SIZE` twice as much in that dimension."""
    small, large = Product(size, size, size, 1), Product(size * scale, size, size, 1)
    assert large.slowdown() <= small.slowdown()
    huge = 10**9
    assert Product(HALF_SIZE, huge, huge, 1).slowdown() == pytest.approx(2, rel=1e-6)


def test_textbook_flops_of_bert_base() -> None:
    """Six FLOPs a weight and token, and the attention scores."""
    model = ARCHITECTURES["BERT-Base"]
    training = Training(model, 1.1e8, 2, 8, 128, 1, head_part=0.0)
    weights = 12 * (4 * 768**2 + 2 * 768 * 3072)
    scores = 12 * 3 * 4 * 128 * 768
    assert model.layers * model.layer_weights == weights
    assert training_flops(training) == pytest.approx(8 * 128 * (6 * weights + scores))


def test_a_pipeline_pays_its_bubble() -> None:
    """Stages minus one microbatches more; with many microbatches it hardly shows."""
    few = Training(LLAMA, 6.74e9, 1, 32, 2048, 8, tensor_parallel=8, pipeline_parallel=4)
    constants = replace(CALIBRATIONS["trn1"].constants, pipeline=0.0)
    step = training_step(few, TRN1, constants)
    worked = step.compute_s + step.memory_s - step.overlapped_s + step.host_s
    worked += step.tensor_parallel_s + step.pipeline_transfer_s
    assert step.bubble_s == pytest.approx(3 / 4 * worked)
    many = training_step(replace(few, global_batch=32_000), TRN1, constants)
    assert many.bubble_s < 0.001 * many.total_s
    in_pieces = training_step(replace(few, interleaved=3), TRN1, constants)
    assert in_pieces.bubble_s == pytest.approx(step.bubble_s / 3)


def test_accumulation_hides_the_reduction() -> None:
    """A hundred microbatches a step pay for one reduction and one optimizer."""
    one = Training(ARCHITECTURES["BERT-Large"], 336e6, 16, 16 * 512, 128, 512)
    hundred = replace(one, global_batch=100 * one.global_batch)
    constants = CALIBRATIONS["trn1"].constants
    first, second = training_step(one, TRN1, constants), training_step(hundred, TRN1, constants)
    assert second.gradients_s == first.gradients_s > 0
    assert second.optimizer_s == first.optimizer_s > 0
    assert second.total_s < 90 * first.total_s


def test_zero_shares_the_optimizer() -> None:
    """ZeRO-1: each of the 4 data-parallel workers of an instance updates its part."""
    plain = Training(LLAMA, 6.74e9, 1, 1024, 4096, 64, tensor_parallel=8)
    constants = CALIBRATIONS["trn1"].constants
    shared = training_step(replace(plain, zero="optimizer"), TRN1, constants)
    assert training_step(plain, TRN1, constants).optimizer_s == pytest.approx(4 * shared.optimizer_s)


def test_more_workers_than_cores_are_refused() -> None:
    """The message says how many instances they need."""
    training = Training(LLAMA, 6.74e9, 1, 64, 4096, 64, tensor_parallel=8)
    with pytest.raises(InvalidInput, match=r"512 workers need 16 x ml\.trn1\.32xlarge"):
        training_step(training, TRN1, CALIBRATIONS["trn1"].constants, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"microbatch": 0}, {"parameters": float("nan")}, {"storage_dtype": "int8"}, {"recompute": "some"},
        {"zero": "2"}, {"attention": "fast"}, {"head_part": 2.0}, {"global_batch": 1},
    ],
)  # fmt: skip
def test_descriptions_check_their_fields(wrong: Any) -> None:
    """The message names the field."""
    good: dict[str, Any] = {
        "architecture": LLAMA, "parameters": 6.7e9, "microbatch": 1, "global_batch": 8,
        "sequence_length": 128, "data_parallel": 8,
    }  # fmt: skip
    with pytest.raises(InvalidInput, match=next(iter(wrong)).replace("_", ".")):
        Training(**{**good, **wrong})


def test_architectures_check_their_fields() -> None:
    """A model has layers, and a family that is one."""
    with pytest.raises(InvalidInput, match="layers must be 1 or more, not 0"):
        replace(LLAMA, layers=0)
    with pytest.raises(InvalidInput, match="family must be one of encoder, decoder"):
        replace(LLAMA, family="rnn")  # type: ignore[arg-type]


def test_memory_tells_which_rows_recompute() -> None:
    """The rule gives the published column "Activation Checkpointing" for the MPT rows of one p4d."""
    mpt = [row.training for row in rows_of("a100") if row.training.zero == "full" and row.nodes == 1]
    assert len(mpt) == 34
    for training in mpt:
        unknown = replace(training, recompute="none")
        assert needed_recompute(unknown, P4D) == training.recompute
        assert activation_bytes(unknown) > 0 < state_bytes(unknown)


def test_counts_of_a_description_are_those_of_one_microbatch() -> None:
    """FLOPs of a worker's microbatch; flash attention keeps scores out of memory."""
    training = Training(ARCHITECTURES["BERT-Large"], 336e6, 16, 16 * 32 * 4, 128, 32)
    work = step_work(training)
    assert work.flops["bf16"] == pytest.approx(training_flops(training) / (32 * 4))
    assert work.collectives[0].payload_bytes == pytest.approx(336e6 * 2 / 4)
    flash = replace(training, attention="flash")
    scores = 3 * 16 * 128 * 24 * 2 * 16 * 128
    assert product_elements(training) - product_elements(flash) == scores
