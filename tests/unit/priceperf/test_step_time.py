"""What the parts of a step's time from counts are. That more work takes longer: test_model_properties.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windtunnel.priceperf import (
    AUTO_CAST,
    FP32,
    TF32,
    InvalidInput,
    StepWork,
    instance_type,
    step_time,
)
from windtunnel.priceperf.model.collectives import BUCKET_BYTES, Collective, Group, collective_seconds
from windtunnel.priceperf.model.counted_step import PRODUCT_SLOWDOWN, VECTOR_PER_PRODUCT_BYTE
from windtunnel.priceperf.model.engines import Constants, bytes_s

TRN1 = instance_type("ml.trn1.32xlarge")
P4D = instance_type("ml.p4d.24xlarge")
PERFECT = Constants(
    tensor=1, vector=1, memory=1, eager_passes=0, flash=1, link=1, network=1, hop_s=0, overlap=0,
    hidden_collectives=0, straggling=0,
)  # fmt: skip


def test_peak_is_reached_at_full_efficiency() -> None:
    """95 TFLOP in bf16 take a NeuronCore one second, and what small products add; bytes their bandwidth."""
    trn = step_time(StepWork(1, {"fp32": 95e12}, 0), TRN1, AUTO_CAST, PERFECT)
    gpu = step_time(StepWork(1, {"fp32": 19.5e12}, 0), P4D, FP32, PERFECT)
    assert trn.compute_s == pytest.approx(PRODUCT_SLOWDOWN)
    assert gpu.compute_s == pytest.approx(1 + (PRODUCT_SLOWDOWN - 1) * 19.5 / 312)
    assert bytes_s(1555e9, P4D, 1.0) == pytest.approx(1.0)


def test_state_is_streamed_and_activations_pass_several_times() -> None:
    """Of the same bytes, those of weights count once."""
    activations = step_time(StepWork(1, {}, 1555e9), P4D, TF32, PERFECT).memory_s
    state = step_time(StepWork(1, {}, 1555e9, state_bytes=1555e9), P4D, TF32, PERFECT).memory_s
    assert state == pytest.approx(1.0)
    assert activations == pytest.approx(VECTOR_PER_PRODUCT_BYTE)
    with pytest.raises(InvalidInput, match="state bytes"):
        StepWork(1, {}, 1.0, state_bytes=2.0)


def test_ring_identities() -> None:
    """All-reduce is reduce-scatter and all-gather; alone there is nothing to move."""
    full, half, other = (
        collective_seconds(Collective(kind, 0, 1e9), P4D, PERFECT, Group(8, 8))
        for kind in ("all_reduce", "reduce_scatter", "all_gather")
    )
    assert full == pytest.approx(half + other)
    assert full == pytest.approx(2 * 7 / 8 * 1e9 / 600e9)
    assert collective_seconds(Collective("all_reduce", 5, 1e9), P4D, PERFECT, Group(1, 1)) == 0


def test_between_instances_the_network_adds_its_ring() -> None:
    """Two p4d share 50 GB/s each: the payload crosses once, and once for each ring that shares it."""
    one = collective_seconds(Collective("all_reduce", 0, 1e9), P4D, PERFECT, Group(8, 8))
    two = collective_seconds(Collective("all_reduce", 0, 1e9), P4D, PERFECT, Group(16, 8))
    assert two - one == pytest.approx(1e9 / 50e9)
    shared = collective_seconds(Collective("all_reduce", 0, 1e9), P4D, PERFECT, Group(16, 8, 4))
    assert shared - one == pytest.approx(4e9 / 50e9)


def test_small_messages_are_bound_by_hops() -> None:
    """Each message goes round the ring twice; a large payload is cut into buckets."""
    slow = replace(PERFECT, hop_s=1e-3)
    assert collective_seconds(Collective("all_reduce", 3, 0), P4D, slow, Group(8, 8)) == pytest.approx(
        3 * 2 * 7 * 1e-3
    )
    work = StepWork(1, {}, 0, (Collective("all_reduce", 1, 10 * BUCKET_BYTES),))
    hops = step_time(work, P4D, TF32, slow).collective_s - step_time(work, P4D, TF32, PERFECT).collective_s
    assert hops == pytest.approx(10 * 2 * 7 * 1e-3)


def test_what_hides_behind_compute_does_not_count() -> None:
    """Overlap hides collectives, never more than there are; engines overlap by the shorter."""
    work = StepWork(1, {"bf16": 95e12}, 410e9 / 4, (Collective("all_reduce", 0, 1e9),))
    hidden = step_time(work, TRN1, AUTO_CAST, replace(PERFECT, hidden_collectives=0.5, overlap=0.5))
    shown = step_time(work, TRN1, AUTO_CAST, PERFECT)
    assert hidden.exposed_collective_s == 0
    assert shown.exposed_collective_s == shown.collective_s > 0
    assert hidden.overlapped_s == pytest.approx(shown.memory_s / 2)
    assert shown.overlapped_s == 0


def test_efficiencies_out_of_range_are_refused() -> None:
    """Nothing runs above its peak."""
    for efficiency in (0.0, 1.1):
        with pytest.raises(InvalidInput, match="tensor must be above 0 and at most 1"):
            replace(PERFECT, tensor=efficiency)


def test_unknown_dtype_lists_the_known() -> None:
    """fp64 has no peak here."""
    with pytest.raises(InvalidInput, match="it has: bf16"):
        step_time(StepWork(1, {"fp64": 1.0}, 0), TRN1, AUTO_CAST, PERFECT)
