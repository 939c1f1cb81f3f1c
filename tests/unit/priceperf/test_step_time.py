"""A step's time behaves like physics: more work is never faster, more machine never slower."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import (
    AUTO_CAST,
    CALIBRATIONS,
    FP32,
    TF32,
    InvalidInput,
    StepWork,
    instance_type,
    step_time,
)
from windtunnel.priceperf.analytic import training_flops
from windtunnel.priceperf.collectives import Collective, collective_seconds
from windtunnel.priceperf.memory import memory_seconds
from windtunnel.priceperf.published_rows import ARCHITECTURES
from windtunnel.priceperf.step import Efficiency

TRN1 = instance_type("ml.trn1.32xlarge")
P4D = instance_type("ml.p4d.24xlarge")
AMOUNT = st.floats(0, 1e15, allow_nan=False)
PERFECT = Efficiency(1.0, 1.0, 1.0, 0.0)


@given(flops=AMOUNT, moved=AMOUNT, payload=AMOUNT, more=st.floats(1, 100), count=st.integers(1, 64))
def test_more_work_never_takes_less_time(
    flops: float, moved: float, payload: float, more: float, count: int
) -> None:
    """In each of FLOPs, bytes and payload, on both families."""
    for instance, precision in ((TRN1, AUTO_CAST), (P4D, TF32)):
        efficiency = CALIBRATIONS[instance.family].efficiency

        def time(f: float, m: float, p: float) -> float:
            work = StepWork(1, {"fp32": f}, m, (Collective("all_reduce", 1, p),))
            return step_time(work, instance, precision, efficiency, count).total_s  # noqa: B023

        base = time(flops, moved, payload)
        for bigger in (
            (flops * more, moved, payload),
            (flops, moved * more, payload),
            (flops, moved, payload * more),
        ):
            assert time(*bigger) >= base * (1 - 1e-12)


def test_peak_is_reached_at_full_efficiency() -> None:
    """95 TFLOP in bf16 take a NeuronCore one second; 19.5 in fp32 an A100."""
    trn = step_time(StepWork(1, {"fp32": 95e12}, 0), TRN1, AUTO_CAST, PERFECT)
    gpu = step_time(StepWork(1, {"fp32": 19.5e12}, 0), P4D, FP32, PERFECT)
    assert trn.compute_s == pytest.approx(1.0)
    assert gpu.compute_s == pytest.approx(1.0)
    assert memory_seconds(1555e9, P4D, 1.0) == pytest.approx(1.0)


def test_ring_identities() -> None:
    """All-reduce is reduce-scatter and all-gather; alone there is nothing to move."""
    payload = 1e9
    full, half, other = (
        collective_seconds(Collective(kind, 0, payload), P4D, 1.0)
        for kind in ("all_reduce", "reduce_scatter", "all_gather")
    )
    assert full == pytest.approx(half + other)
    assert full == pytest.approx(2 * 7 / 8 * payload / 600e9)


def test_between_instances_the_network_adds_its_ring() -> None:
    """Two p4d share 50 GB/s each: the payload crosses once."""
    one = collective_seconds(Collective("all_reduce", 0, 1e9), P4D, 1.0, 1)
    two = collective_seconds(Collective("all_reduce", 0, 1e9), P4D, 1.0, 2)
    assert two - one == pytest.approx(1e9 / 50e9)


def test_what_hides_behind_compute_does_not_count() -> None:
    """Overlap hides collectives, never more than there are."""
    work = StepWork(1, {"bf16": 95e12}, 0, (Collective("all_reduce", 0, 1e9),))
    hidden = step_time(work, TRN1, AUTO_CAST, Efficiency(1.0, 1.0, 1.0, 0.5))
    shown = step_time(work, TRN1, AUTO_CAST, PERFECT)
    assert hidden.exposed_collective_s == 0
    assert shown.exposed_collective_s == shown.collective_s > 0
    assert shown.largest == "compute"


def test_textbook_flops_of_bert_base() -> None:
    """Six FLOPs a weight and token, and the attention scores."""
    model = ARCHITECTURES["BERT-Base"]
    weights = 12 * (4 * 768**2 + 2 * 768 * 3072)
    scores = 12 * 3 * 4 * 128 * 768
    assert training_flops(model, 1, 128, 0.0) == pytest.approx(128 * (6 * weights + scores))


@pytest.mark.parametrize("efficiency", [0.0, -0.1, 1.1])
def test_efficiencies_out_of_range_are_refused(efficiency: float) -> None:
    """Nothing runs above its peak."""
    with pytest.raises(InvalidInput, match="efficiency"):
        memory_seconds(1.0, TRN1, efficiency)


def test_unknown_dtype_lists_the_known() -> None:
    """fp64 has no peak here."""
    with pytest.raises(InvalidInput, match="it has: bf16"):
        step_time(StepWork(1, {"fp64": 1.0}, 0), TRN1, AUTO_CAST, PERFECT)
