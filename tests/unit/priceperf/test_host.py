"""Tracing a step costs what the device does not hide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.published_work import benchmark_work
from windtunnel.priceperf import AUTO_CAST, FP32, InvalidInput, calibration_of, instance_type
from windtunnel.priceperf.calibration.published_rows import rows_of
from windtunnel.priceperf.model.counted_step import step_time
from windtunnel.priceperf.model.described_step import forward_step, training_step
from windtunnel.priceperf.model.engines import HOST_S
from windtunnel.priceperf.model.host_tracing import (
    BACKWARD_TRACE_S,
    FORWARD_TRACE_S,
    OPTIMIZER_TRACE_S,
    HostWork,
)
from windtunnel.priceperf.model.plain_script import LAUNCH_PER_TRACE
from windtunnel.priceperf.model.step_time import StepTime

TRN1, P4D = instance_type("ml.trn1.32xlarge"), instance_type("ml.p4d.24xlarge")
SECONDS = st.floats(0, 10)


def step(host: HostWork | None, name: str = "ml.trn1.32xlarge") -> StepTime:
    instance = instance_type(name)
    work = replace(benchmark_work(8), host=host)
    precision = AUTO_CAST if instance.is_neuron else FP32
    return step_time(work, instance, precision, calibration_of(instance).constants)


def test_the_longer_of_device_and_recording_sets_the_step() -> None:
    """Hidden when shorter; when longer, the step takes as long as tracing does."""
    alone = step(None).total_s
    assert step(HostWork(alone / 3)).total_s == alone
    assert step(HostWork(3 * alone)).total_s == pytest.approx(3 * alone + HOST_S)


def test_a_script_that_reads_values_waits_for_both() -> None:
    """Reading in each step adds tracing to the device's time; in every second step, half of that."""
    alone = step(None).total_s
    assert step(HostWork(0.01, reads=1.0)).total_s == pytest.approx(alone + 0.01)
    assert step(HostWork(0.01, reads=0.5)).total_s == pytest.approx(alone + 0.005)


def test_a_gpu_is_launched_by_the_same_python() -> None:
    """Launching takes a part of what tracing does: hidden when shorter than the device's work; else it is the step."""
    alone = step(None, P4D.name).total_s
    assert step(HostWork(alone), P4D.name).total_s == alone
    assert step(HostWork(50 * alone), P4D.name).total_s == pytest.approx(50 * alone * LAUNCH_PER_TRACE)


@given(SECONDS, SECONDS, st.floats(0, 1), st.floats(0.5, 2))
def test_never_less_than_the_device_nor_more_than_both(
    device: float, trace: float, reads: float, slowness: float
) -> None:
    """Between the longer of the two and their sum, and a slower host never makes a step shorter."""
    added = HostWork(trace, reads).not_hidden_s(device, slowness)
    slack = 1e-9
    assert max(device, trace * slowness) <= device + added + slack
    assert added <= trace * slowness + slack
    assert HostWork(trace, reads).not_hidden_s(device, slowness * 1.5) >= added - slack


def test_impossible_hosts_are_refused() -> None:
    """Negative seconds, a part above 1, no number at all."""
    for arguments in ((-1.0, 0.0), (1.0, 1.1), (math.nan, 0.0), (1.0, math.nan)):
        with pytest.raises(InvalidInput):
            HostWork(*arguments)


@given(st.floats(1e-4, 1), st.floats(1e-3, 0.1), st.floats(0.2, 20))
def test_a_slower_machine_gives_the_same_answer(trace: float, reference: float, slowness: float) -> None:
    """What slows tracing slows the reference work too; without one the seconds count as they are."""
    own = HostWork.measured(trace, 0.0, reference)
    other = HostWork.measured(trace * slowness, 0.0, reference * slowness)
    assert other.trace_s == pytest.approx(own.trace_s)
    assert HostWork.measured(trace, 0.0, None).trace_s == trace


def test_a_stage_of_a_pipeline_runs_six_graphs_a_micro_batch() -> None:
    """The host adds its part to each, on NeuronCores; without a pipeline there is one graph."""
    constants = calibration_of(instance_type("trn1.32xlarge")).constants
    for row in rows_of("trn1"):
        graphs = 6 if row.training.pipeline_parallel > 1 else 1
        step = training_step(row.training, row.instance, constants, row.nodes)
        assert step.host_s == pytest.approx(row.training.microbatches * graphs * HOST_S)


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_described_step_takes_what_recording_its_layers_takes(recompute: Literal["none", "full"]) -> None:
    """Where the device is done before that; what is recomputed is recorded again, and a long step hides it all."""
    (row,) = (each for each in rows_of("trn1") if each.config == "BERT-L ph1 bf16 1n AdamW gbs16k")
    small = replace(row.training, microbatch=0.1, global_batch=6.4, recompute=recompute)
    constants = calibration_of(TRN1).constants
    passes, layers = 1 + (recompute == "full"), small.architecture.layers
    recorded = 2 * (passes * FORWARD_TRACE_S + BACKWARD_TRACE_S) + OPTIMIZER_TRACE_S
    assert training_step(small, TRN1, constants).total_s >= recorded * layers
    assert training_step(row.training, TRN1, constants).host_s == row.training.microbatches * HOST_S


def test_an_evaluation_recomputes_nothing() -> None:
    """Its layers are recorded once, whatever the training's backward passes do."""
    (row,) = (each for each in rows_of("trn1") if each.config == "BERT-L ph1 bf16 1n AdamW gbs16k")
    constants = calibration_of(TRN1).constants
    seconds = []
    for recompute in ("none", "full"):
        small = replace(row.training, microbatch=0.1, global_batch=6.4, recompute=recompute)
        evaluation = forward_step(small, training_step(small, TRN1, constants), TRN1, constants, 1)
        assert evaluation.host_s > small.microbatches * HOST_S
        seconds.append(evaluation.total_s)
    assert seconds[1] == pytest.approx(seconds[0])
