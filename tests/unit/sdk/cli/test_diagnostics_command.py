"""`job.diagnostics()` and `windtunnel diagnostics` read the job's counters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService
from windtunnel import TrainingJob
from windtunnel.errors import JobNotFinished
from windtunnel.session.local import LocalSession

FOUND = {"kind": "host_read", "severity": "warning", "line": "train.py:9", "message": ".item().", "advice": "Less.",
         "count": 4, "seconds": 0.5}  # fmt: skip


Found = Callable[..., None]


@pytest.fixture
def found(rehearsal: Callable[[Any], None]) -> Found:
    """A job that has ended, in which this was found."""

    def stored(**replaced: str) -> None:
        rehearsal(
            {"schema": "windtunnel.counters/1", "job": "j", "instance_type": "ml.trn1.2xlarge",
             "instance_count": 1, "graphs": {"count": 0}, "diagnostics": [{**FOUND, **replaced}]}
        )  # fmt: skip

    return stored


def test_text_json_and_python_give_what_was_found(found: Found, local: LocalSession, invoke: Invoke) -> None:
    """From the counters of the job's output."""
    found()
    (one,) = TrainingJob("j", local).diagnostics()
    assert (one.kind, one.severity, one.line, one.count, one.seconds) == (
        "host_read", "warning", "train.py:9", 4, 0.5,
    )  # fmt: skip
    assert "train.py:9" in invoke("diagnostics", "j").out
    assert json.loads(invoke("diagnostics", "j", "--json").out)["diagnostics"][0]["advice"] == "Less."


def test_a_job_without_counters_is_one_clean_message(
    jobs: FakeService, local: LocalSession, invoke: Invoke
) -> None:
    """On the command line exit code 1."""
    invoke("run", "src/train.py", "--job-name", "j")
    with pytest.raises(JobNotFinished):
        TrainingJob("j", local).diagnostics()
    assert "has no counters" in invoke("diagnostics", "j", exits=1).err


def test_a_build_fails_on_findings_of_a_severity(found: Found, invoke: Invoke) -> None:
    """On those that are as severe or more, here a warning. What was found is printed all the same."""
    found()
    for severity, exits in (("error", 0), ("warning", 1), ("note", 1)):
        said = invoke("diagnostics", "j", "--json", "--fail-on", severity, exits=exits)
        assert json.loads(said.out)["diagnostics"][0]["severity"] == "warning"


def test_a_build_fails_on_a_training_of_something_else(found: Found, invoke: Invoke) -> None:
    """Not on what only takes longer."""
    for kind, severity, exits in (
        ("no_exchange", "warning", 1),
        ("device_memory", "error", 1),
        ("host_read", "warning", 0),
    ):
        found(kind=kind, severity=severity)
        invoke("diagnostics", "j", "--fail-on", "wrong-result", exits=exits)


def test_a_build_does_not_fail_on_how_long_this_machine_compiles(found: Found, invoke: Invoke) -> None:
    """There is nothing to change in the script."""
    found(kind="slow_compile", severity="note")
    invoke("diagnostics", "j", "--fail-on", "note")
