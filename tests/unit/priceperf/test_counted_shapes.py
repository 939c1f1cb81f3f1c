"""What a rehearsal counts of a step's products and fused work, read and modelled."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.published_work import benchmark_work
from windtunnel.priceperf import (
    AUTO_CAST,
    FP32,
    CountedWorkload,
    InvalidCounters,
    calibration_of,
    instance_type,
)
from windtunnel.priceperf.calibration.published_rows import rows_of
from windtunnel.priceperf.model.counted_step import step_time
from windtunnel.priceperf.model.described_as_counted import FUSED_PASSES, fused_bytes, step_work
from windtunnel.priceperf.model.engines import CONVOLVED, Product, Scores
from windtunnel.priceperf.model.fused_attention import IN_32_BITS
from windtunnel.priceperf.model.precision import BF16_AUTOCAST, GPU_PRECISIONS, NO_CAST, Precision
from windtunnel.priceperf.model.training_settings import OPTIMIZER_BYTES
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS
from windtunnel.priceperf.workload.counted import FROZEN_MOVES, WEIGHT_MOVES

TRN1, P4D = instance_type("ml.trn1.32xlarge"), instance_type("ml.p4d.24xlarge")


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The counters of the rehearsal with something changed."""
    counters = copy.deepcopy(dict(COUNTERS))
    change(counters)
    return counters


def test_products_hold_all_flops() -> None:
    """What the dimensions give is what was counted by dtype, in training and evaluation."""
    workload = CountedWorkload.from_counters(COUNTERS)
    assert workload.evaluation is not None
    for work in (workload.step, workload.evaluation):
        assert set(work.products) == set(work.flops) == {"fp32"}
        assert sum(item.flops for item in work.products["fp32"]) == pytest.approx(work.flops["fp32"])


def test_a_counted_step_is_the_described_one() -> None:
    """BERT base from a rehearsal and from its dimensions: FLOPs within 1 %, device time within 10 %.

    The rehearsal has a pooler, a classifier and the embedding's gradient besides, and real kernels.
    """
    counted = CountedWorkload.from_counters(COUNTERS).at(8)
    described = benchmark_work(8)
    assert counted.flops["fp32"] == pytest.approx(described.flops["fp32"], rel=0.01)
    for instance, precision in ((TRN1, AUTO_CAST), (P4D, FP32)):
        constants = calibration_of(instance).constants
        ours = step_time(counted, instance, precision, constants)
        theirs = step_time(described, instance, precision, constants)
        device, expected = (item.total_s - item.host_s for item in (ours, theirs))
        assert device == pytest.approx(expected, rel=0.10)


def test_scores_are_found_in_batched_products() -> None:
    """96 heads of 128 x 128 in 12 layers: counted once, whatever the six products of attention are."""
    step = CountedWorkload.from_counters(COUNTERS).step
    assert step.scores.elements == pytest.approx(12 * 96 * 128 * 128)
    assert step.scores.padded == step.scores.elements

    def in_large_batches(counters: dict[str, Any]) -> None:
        counters["other"]["samples"] *= 100
        products = counters["other"]["work"]["products"]
        counters["other"]["work"]["products"] = [
            [100 * batch if batch > 1 else 1, *rest] for batch, *rest in products
        ]

    for told in (COUNTERS, changed(in_large_batches)):
        evaluation = CountedWorkload.from_counters(told).evaluation
        assert evaluation is not None
        assert evaluation.scores.elements * 8 == pytest.approx(step.scores.elements, rel=0.01)
    padded = Scores.of([Product(197, 64, 197, 10, batched=True)], 1)
    assert (padded.elements, padded.padded) == (10 * 197 * 197, 10 * 256 * 197)
    grouped_convolution = Product(5000, 9, 1, 64, batched=True)
    assert Scores.of([grouped_convolution], 1) == Scores()


def test_the_groups_of_a_convolution_are_no_attention(counters: Any) -> None:
    """However large; nor are fewer products than attention has. A GPU computes them in fp32."""
    told = counters(steps=1)
    large = [16, 250, 6144, 48, "fp32", 1]
    work = {
        "products": [large, [1, 64, 64, 64, "fp32", 1]],
        "elementwise": {"activations": {"fused_bytes": 1e9}},
        "gather_bytes": 0,
        "scatter_bytes": 0,
    }
    told["train"]["work"] = work
    of_pairs = CountedWorkload.from_counters(told)
    assert not of_pairs.is_transformer  # attention would be six products a step
    told["train"]["work"] = {**work, "products": [[*large[:-1], 6]]}
    assert CountedWorkload.from_counters(told).is_transformer
    told["train"]["work"] = {**work, "convolutions": [large]}
    convolved = CountedWorkload.from_counters(told)
    assert not convolved.is_transformer
    assert convolved.step.scores == Scores() and convolved.step.convolved > 0.9
    gpu = calibration_of(P4D).constants
    in_bf16, in_fp32 = (
        step_time(convolved.step, P4D, precision, gpu).compute_s for precision in (BF16_AUTOCAST, FP32)
    )
    assert in_bf16 == pytest.approx(in_fp32, rel=0.01)


def test_a_neuron_core_takes_long_for_convolutions_unless_they_are_a_few(counters: Any) -> None:
    """A network made of them reaches a hundredth of the peak, in whichever precision. Patches of a transformer are
    products, and so may all of them be at the fast end of the interval.
    """
    told = counters(steps=1)
    convolution, product = [1, 4096, 1152, 128, "fp32", 100], [1, 4096, 4096, 4096, "fp32", 1]

    def compute_s(products: list[Any], convolutions: list[Any], *, as_products: bool = False) -> float:
        told["train"]["work"] = {
            "products": products,
            "convolutions": convolutions,
            "elementwise": {"activations": {"fused_bytes": 1e9}},
            "gather_bytes": 0,
            "scatter_bytes": 0,
        }
        step = CountedWorkload.from_counters(told).step
        constants = calibration_of(TRN1).constants
        work = step.as_products() if as_products else step
        in_bf16, in_fp32 = (step_time(work, TRN1, each, constants).compute_s for each in (AUTO_CAST, NO_CAST))
        assert in_bf16 <= in_fp32
        return in_bf16

    flops = 2 * 4096 * 1152 * 128 * 100
    alone = compute_s([convolution], [convolution])
    assert alone == pytest.approx(flops / (CONVOLVED * TRN1.core_peak_flops("bf16")))
    assert compute_s([convolution], [convolution], as_products=True) < alone / 10
    assert compute_s([convolution], [convolution], as_products=True) == compute_s([convolution], [])
    a_few = [product, [*convolution[:-1], 1]]
    assert compute_s(a_few, [[*convolution[:-1], 1]]) == compute_s(a_few, [])


@pytest.mark.parametrize("row", [row for row in rows_of("trn1") if row.training.attention == "eager"][:9])
def test_the_fusion_models_passes_are_those_of_the_simulator(row: Any) -> None:
    """The bytes of a description are layers x (passes of the hidden state + passes of the scores), and logits."""
    training = row.training
    model, (hidden, scores) = training.architecture, FUSED_PASSES[row.training.architecture.family]
    layer = training.tokens * (
        hidden * model.hidden_size * training.vector_bytes
        + scores * model.attention_heads * training.sequence_length * training.score_bytes
    )
    assert fused_bytes(training) >= model.layers * layer
    assert step_work(training).fused_bytes == fused_bytes(training)


def test_a_gpu_computes_once_what_trn1_computes_again_for_a_value() -> None:
    """A loss that is read before its step ends: trn1 runs the forward pass twice, a GPU waits."""

    def twice(counters: dict[str, Any]) -> None:
        train = counters["train"]
        train["repeated"] = {"flops": train["flops"]["fp32"], "fused_bytes": 0}
        train["flops"]["fp32"] *= 2
        for product in train["work"]["products"]:
            product[-1] *= 2
        activations = train["work"]["elementwise"]["activations"]
        train["repeated"]["fused_bytes"] = activations["fused_bytes"]
        activations["fused_bytes"] *= 2

    plain = CountedWorkload.from_counters(COUNTERS).at(8)
    reading = CountedWorkload.from_counters(changed(twice)).at(8)

    def device_s(work: Any, instance: Any, precision: Precision) -> float:
        time = step_time(work, instance, precision, calibration_of(instance).constants)
        return time.compute_s + time.memory_s

    assert device_s(reading, P4D, FP32) == pytest.approx(device_s(plain, P4D, FP32), rel=0.01)
    assert device_s(reading, TRN1, AUTO_CAST) > 1.5 * device_s(plain, TRN1, AUTO_CAST)


@given(st.floats(0.1, 1000))
def test_more_samples_are_more_work_of_the_same_kind(samples: float) -> None:
    """Products, fused bytes and scores grow with the batch; gradients, collectives and the host do not."""
    workload = CountedWorkload.from_counters(COUNTERS)
    once, more = workload.at(1.0), workload.at(samples)
    assert once.fused_bytes is not None
    assert more.fused_bytes == pytest.approx(once.fused_bytes * samples)
    assert more.scores.elements == pytest.approx(once.scores.elements * samples)
    assert sum(item.flops for item in more.products["fp32"]) == pytest.approx(once.flops["fp32"] * samples)
    assert (more.state_bytes, more.collectives, more.host) == (once.state_bytes, once.collectives, once.host)


def test_evaluation_without_one_of_its_own_is_a_third_of_training() -> None:
    """Scores pass forward only, and a third of the bytes of a step."""
    workload = CountedWorkload.from_counters(changed(lambda c: c.update(other=None)))
    forward, step = workload.evaluation_at(8), workload.at(8)
    assert not forward.backward
    assert forward.flops["fp32"] == pytest.approx(step.flops["fp32"] / 3)
    assert forward.scores.elements == pytest.approx(step.scores.elements)
    assert forward.collectives == ()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda work: work.update(products=[[1, 2, 3, 4, "fp32"]]), "work.products"),
        (lambda work: work.update(products=[[1, 2, 3, -4, "fp32", 1]]), "work.products.columns"),
        (lambda work: work.update(products=[[1, 2, 3, 4, 5, 1]]), "work.products"),
        (lambda work: work.update(elementwise=None), "work.elementwise"),
        (lambda work: work["elementwise"]["activations"].pop("fused_bytes"), "fused_bytes"),
        (lambda work: work.update(gather_bytes="many"), "gather_bytes"),
    ],
)
def test_impossible_work_is_named(change: Callable[[dict[str, Any]], None], named: str) -> None:
    """The field, what it should be, what it is."""
    with pytest.raises(InvalidCounters, match=named):
        CountedWorkload.from_counters(changed(lambda counters: change(counters["train"]["work"])))


def attending(**scores: float) -> CountedWorkload:
    """The rehearsal's scores of 2,048 tokens where there were 128, so many of them by scaled dot product attention."""

    def change(counters: dict[str, Any]) -> None:
        work = counters["train"]["work"]
        work["products"] = [
            [batch, *(2048 if batch > 1 and size == 128 else size for size in dimensions), dtype, times]
            for batch, *dimensions, dtype, times in work["products"]
        ]
        whole = CountedWorkload.from_counters(counters).step.scores.elements * counters["train"]["steps"]
        work["sdpa"] = {name: part * whole for name, part in scores.items()}

    return CountedWorkload.from_counters(changed(change))


@pytest.mark.parametrize("precision", GPU_PRECISIONS)
def test_a_gpu_has_a_kernel_for_scaled_dot_product_attention(precision: Precision) -> None:
    """Which moves no scores; a causal one computes half of them. A NeuronCore has none: nothing changes."""
    gpu, neuron = (calibration_of(each).constants for each in (P4D, TRN1))
    out, half, fused, causal, again = (
        attending(**scores).step
        for scores in (
            {"scores": 0},
            {"scores": 0.5},
            {"scores": 1},
            {"scores": 1, "causal_scores": 1},
            {"scores": 1.5, "causal_scores": 1.5},  # recomputed in the backward pass
        )
    )
    assert again.fused == causal.fused == (1, 1)
    ours = [step_time(step, P4D, precision, gpu) for step in (out, half, fused, causal)]
    moved = out.scores.elements * gpu.eager_passes * out.score_bytes
    saved = ours[0].memory_s - ours[2].memory_s
    assert saved == pytest.approx(moved / (P4D.core_memory_bandwidth * gpu.vector))
    assert ours[1].memory_s == pytest.approx((ours[0].memory_s + ours[2].memory_s) / 2)
    device = [each.total_s - each.host_s for each in ours]
    assert device[3] < device[2]
    if precision is BF16_AUTOCAST:  # its kernel for 32 bits may take longer than products and memory
        assert device[2] < device[1] < device[0]
    flops = 7 / 6 * sum(item.flops for item in out.products["fp32"] if item.batched)
    kernel = 2 * (ours[2].compute_s - ours[3].compute_s)
    peak = P4D.core_peak_flops("bf16") * gpu.flash
    if precision is not BF16_AUTOCAST:
        peak = P4D.core_peak_flops("fp32") * IN_32_BITS
    assert kernel == pytest.approx(flops / peak)
    assert step_time(causal, TRN1, AUTO_CAST, neuron) == step_time(out, TRN1, AUTO_CAST, neuron)


@pytest.mark.parametrize("causal", [False, True])
def test_what_transformers_chose_because_of_torch_xla_it_does_not_choose_on_a_gpu(causal: bool) -> None:
    """All scores are the kernel's then, in evaluation too; where the script computed some by it, these alone."""
    chosen = {"count": 109_482_240, "sdpa_elsewhere": True, "is_causal": causal}
    job = CountedWorkload.from_counters(changed(lambda counters: counters.update(parameters=chosen)))
    assert job.evaluation is not None
    assert job.step.fused == job.evaluation.fused == (1.0, float(causal))

    def asked(counters: dict[str, Any]) -> None:
        counters.update(parameters=chosen)
        counters["train"]["work"]["sdpa"] = {"scores": 1.0}

    assert 0 < CountedWorkload.from_counters(changed(asked)).step.fused.part < 1


def test_parameters_are_those_that_the_optimizer_told() -> None:
    """What else is reduced (a loss, a metric) does not count as gradients then."""
    told = changed(lambda counters: counters.update(parameters={"count": 109_482_240}))
    told["train"]["collectives"]["all_reduce"]["bytes"] *= 2
    assert CountedWorkload.from_counters(told).parameters == 109_482_240
    with pytest.raises(InvalidCounters, match=r"parameters\.count"):
        CountedWorkload.from_counters(changed(lambda counters: counters.update(parameters={})))


@pytest.mark.parametrize("frozen", [0, 90_000_000])
def test_a_rank_trains_a_part_of_the_model(frozen: int) -> None:
    """The model's size and its weights in a step are the whole model's; the optimizer's work is the rank's own."""
    held = {"count": 10_000_000, "model": 109_482_240, "frozen": frozen, "parameter_bytes": 40_000_000}
    counted = CountedWorkload.from_counters(changed(lambda counters: counters.update(parameters=held)))
    assert (counted.parameters, counted.weights, counted.stepped) == (109_482_240, 109_482_240, 10_000_000)
    weights = 4 * (WEIGHT_MOVES * (109_482_240 - frozen) + FROZEN_MOVES * frozen)
    assert counted.state_bytes == weights + 10_000_000 * OPTIMIZER_BYTES
    last = counted.accumulating()
    assert counted.step.bytes_moved - last.step.bytes_moved == 10_000_000 * OPTIMIZER_BYTES
