"""`job.diagnostics()` and `windtunnel diagnostics` read the job's counters."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService
from windtunnel import TrainingJob
from windtunnel.cli import main as cli
from windtunnel.errors import JobNotFinished
from windtunnel.session.local import LocalSession

FOUND = {"kind": "host_read", "severity": "warning", "line": "train.py:9", "message": ".item().", "advice": "Less.",
         "count": 4, "seconds": 0.5}  # fmt: skip


@pytest.fixture
def service(jobs: FakeService) -> FakeService:
    """The service behind the command line's session, with a job that has ended."""
    assert cli.main(["run", "src/train.py", "--job-name", "j"]) == 0
    return jobs


def put_counters(service: FakeService, found: Mapping[str, object] = FOUND) -> None:
    counters = {"schema": "windtunnel.counters/1", "job": "j", "instance_type": "ml.trn1.2xlarge",
                "instance_count": 1, "graphs": {"count": 0}, "diagnostics": [found]}  # fmt: skip
    service.store("j", "windtunnel/counters.json", json.dumps(counters).encode())


def test_a_job_gives_its_diagnostics(service: FakeService, local: LocalSession) -> None:
    """Structured, from the counters of its output."""
    put_counters(service)
    (found,) = TrainingJob("j", local).diagnostics()
    assert (found.kind, found.severity, found.line, found.count, found.seconds) == (
        "host_read", "warning", "train.py:9", 4, 0.5,
    )  # fmt: skip


def test_the_command_prints_text_and_json(service: FakeService, invoke: Invoke) -> None:
    """Both forms, exit code 0."""
    put_counters(service)
    assert "train.py:9" in invoke("diagnostics", "j").out
    assert json.loads(invoke("diagnostics", "j", "--json").out)["diagnostics"][0]["advice"] == "Less."


def test_a_job_without_counters_is_one_clean_message(
    service: FakeService, local: LocalSession, invoke: Invoke
) -> None:
    """On the command line exit code 1."""
    with pytest.raises(JobNotFinished):
        TrainingJob("j", local).diagnostics()
    assert "has no counters" in invoke("diagnostics", "j", exits=1).err


@pytest.mark.parametrize(("severity", "exits"), [("error", 0), ("warning", 1), ("note", 1)])
def test_a_build_fails_on_findings_of_a_severity(
    service: FakeService, invoke: Invoke, severity: str, exits: int
) -> None:
    """On those that are as severe or more, here a warning. What was found is printed all the same."""
    put_counters(service)
    said = invoke("diagnostics", "j", "--json", "--fail-on", severity, exits=exits)
    assert json.loads(said.out)["diagnostics"][0]["severity"] == "warning"


@pytest.mark.parametrize(
    ("kind", "severity", "exits"),
    [("no_exchange", "warning", 1), ("device_memory", "error", 1), ("host_read", "warning", 0)],
)
def test_a_build_fails_on_a_training_of_something_else(
    service: FakeService, invoke: Invoke, kind: str, severity: str, exits: int
) -> None:
    """Not on what only takes longer."""
    put_counters(service, {**FOUND, "kind": kind, "severity": severity})
    invoke("diagnostics", "j", "--fail-on", "wrong-result", exits=exits)


def test_a_build_does_not_fail_on_how_long_this_machine_compiles(
    service: FakeService, invoke: Invoke
) -> None:
    """There is nothing to change in the script."""
    put_counters(service, {**FOUND, "kind": "slow_compile", "severity": "note"})
    invoke("diagnostics", "j", "--fail-on", "note")
