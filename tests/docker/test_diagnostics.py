"""A whole job says what Trainium would tell too late: in its log, in `job.diagnostics()`, in its FailureReason."""

from __future__ import annotations

import pytest

from tests.docker.conftest import PATIENCE_S, SCRIPTS, estimator
from windtunnel import LocalSession, TrainingJobFailed

pytestmark = pytest.mark.docker

TORCHRUN = {"torch_distributed": {"enabled": True}}


def line_of(mark: str) -> str:
    """``too_late.py:12`` of the line that a comment marks."""
    lines = (SCRIPTS / "too_late.py").read_text().splitlines()
    return f"too_late.py:{next(number for number, text in enumerate(lines, 1) if f'# line: {mark}' in text)}"


def test_a_ragged_batch_and_a_value_read_in_the_loop_are_named(session: LocalSession) -> None:
    """Both lines: as objects, in the log's end, in the report."""
    job = estimator(session, "too_late.py", distribution=TORCHRUN, hyperparameters={"how": "loop"}).fit(
        logs=False
    )
    found = {one.kind: one for one in job.diagnostics()}
    assert found["ragged_batch"].line == line_of("made")
    assert found["host_read"].line == line_of("read")
    assert found["host_read"].count == 10
    log = list(job.logs())
    summary = log[next(number for number, text in enumerate(log) if "worst first" in text) :]
    for one in found.values():
        assert any(f"{one.severity}: {one.line}: " in text for text in summary)
    graphs = job.diagnostics().graphs
    assert {"first", "shape"} <= {graph.reason for graph in graphs}
    assert all(graph.source.startswith("too_late.py:") for graph in graphs)
    assert line_of("made") in job.report().to_text(full=True)


def test_a_script_that_never_uses_the_device_is_told_in_its_log(session: LocalSession) -> None:
    """At its end, without torchrun (with it: tests/container/test_diagnostics.py); and the job's diagnostics do not say
    that all is well.
    """
    job = estimator(session, "unported.py").fit(logs=False)
    lines = [line for line in job.logs() if line.startswith("[windtunnel]")]
    assert [line for line in lines if "nothing ran on a NeuronCore" in line]
    assert [line for line in lines if "the job has no model" in line]  # it saved none
    assert "device_unused" in [one.kind for one in job.diagnostics()]


def test_a_model_too_big_for_a_core_fails_with_the_devices_message(session: LocalSession) -> None:
    """5 billion fp32 parameters on two cores, in containers of 4 GiB: no host memory is used up for it."""
    job = estimator(session, "too_late.py", distribution=TORCHRUN, hyperparameters={"how": "big"}).fit(
        wait=False
    )
    with pytest.raises(TrainingJobFailed):
        job.wait(logs=False, timeout=PATIENCE_S)
    reason = str(job.describe()["FailureReason"])
    assert "RESOURCE_EXHAUSTED: Failed to allocate 18.6" in reason
    assert "needs 18.6" in reason and "has 16.000GB" in reason
    assert line_of("big") in reason
    (found,) = [one for one in job.diagnostics() if one.severity == "error"]
    assert (found.kind, found.line) == ("device_memory", line_of("big"))
