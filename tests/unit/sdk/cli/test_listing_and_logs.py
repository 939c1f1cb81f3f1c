"""`windtunnel ps` and `windtunnel logs`: what there is, how it stands, and why it failed."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import COMPLETES, FakeService, Step
from windtunnel.cli import main as cli
from windtunnel.cli import output

REASON = "ClientError: Data download failed: the bucket of s3://b/x does not exist.\n" + "x" * 100
FAILS: tuple[Step, ...] = (("InProgress", "Downloading", "", {}), ("Failed", "Failed", "", {}))


def start(jobs: FakeService, name: str = "j", *script: Step, ended: bool = True) -> None:
    """A job with that life, at its end or its start."""
    if script:
        jobs.script = script
    jobs.create_job(
        {
            "TrainingJobName": name,
            "ResourceConfig": {"InstanceCount": 1},
            "OutputDataConfig": {"S3OutputPath": "s3://b/out"},
        }
    )
    for _ in jobs.script if ended else ():
        jobs.describe_job(name)


def printed(invoke: Invoke, *argv: str, code: int = 0) -> list[str]:
    """The lines of stdout."""
    return invoke(*argv, exits=code).out.splitlines()


def test_ps_says_why_a_job_failed_in_its_line(jobs: FakeService, invoke: Invoke) -> None:
    """Short; control characters are written out."""
    jobs.failure = "\x1b[31m" + REASON
    start(jobs, "j", *FAILS)
    header, line = printed(invoke, "ps")
    assert header.split() == ["NAME", "STATUS", "CREATED", "TOOK", "REASON"]
    assert "  \\x1b[31mClientError: Data download failed: the bucket of" in line
    assert line.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert len(line) < 140
    jobs.failure = (
        'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "KeyError: 7\n Traceback'
    )
    assert printed(invoke, "ps")[1].endswith("  KeyError: 7")


def test_ps_shows_what_a_job_is_at(jobs: FakeService, invoke: Invoke) -> None:
    """The secondary status, where it says more than the status; no column for reasons that no job has."""
    start(jobs, "j", ("InProgress", "Uploading", "", {}), ended=False)
    header, line = printed(invoke, "ps")
    assert "REASON" not in header
    assert re.split("  +", line)[1] == "InProgress (Uploading)"
    jobs.script = (("Stopped", "MaxRuntimeExceeded", "", {}),)
    assert re.split("  +", printed(invoke, "ps")[1])[1] == "Stopped (MaxRuntimeExceeded)"


def test_ps_names_jobs_that_were_rehearsed_in_short(jobs: FakeService, invoke: Invoke) -> None:
    """Their losses and models mean nothing, so nobody should take one for a trained job."""
    for name, environment in (("whole", {"A": "1"}), ("short", {"WINDTUNNEL_REHEARSE_STEPS": "7"})):
        start(jobs, name, *COMPLETES)
        jobs.requests[name]["Environment"] = environment
    shown = {line.split()[0]: re.split("  +", line)[1] for line in printed(invoke, "ps")[1:]}
    assert shown == {"whole": "Completed", "short": "Completed, short rehearsal"}
    assert "Environment" not in json.loads("\n".join(printed(invoke, "ps", "--json")))[0]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-1.0, "0:00:00"), (0, "0:00:00"), (0.2, "0:00:01"), (61.001, "0:01:02"), (3723.0, "1:02:03")],
)
def test_a_second_that_has_begun_counts(seconds: float, shown: str) -> None:
    """As in the bill: `ps` showed a second less than `describe` and `run`."""
    assert output.duration(seconds) == shown


def test_ps_for_programs(jobs: FakeService, invoke: Invoke) -> None:
    """Names alone, as many as asked for; JSON has what AWS answers, and why a job failed."""
    jobs.failure = REASON
    for number in range(25):
        start(jobs, f"j{number}", *FAILS)
    assert printed(invoke, "ps", "-q") == [f"j{number}" for number in range(24, 4, -1)]
    assert printed(invoke, "ps", "-q", "-n", "1e0") == ["j24"]
    assert len(printed(invoke, "ps", "-aq")) == 25
    (first, *_) = json.loads("\n".join(printed(invoke, "ps", "--json", "-n", "1")))
    assert (first["TrainingJobName"], first["FailureReason"]) == ("j24", REASON)
    assert first["CreationTime"] == "2026-01-31T12:00:00+00:00"
    jobs.requests.clear()
    assert printed(invoke, "ps", "--json") == ["[]"]


def test_statuses_have_colours_on_a_terminal_only(
    jobs: FakeService, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not there either with NO_COLOR."""
    start(jobs, "Failed", *COMPLETES)
    assert "\x1b" not in "".join(printed(invoke, "ps"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert printed(invoke, "ps")[1].startswith("Failed  \x1b[32mCompleted\x1b[0m  2026-01-31")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(printed(invoke, "ps"))


def test_a_job_is_a_line_on_a_narrow_terminal_too(
    jobs: FakeService, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends at the edge; what `describe` shows is all there."""
    jobs.failure = "ClientError: " + "x" * 60
    start(jobs, "j", *FAILS)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    _, line = printed(invoke, "ps")
    seen = re.sub("\x1b\\[[0-9;]*m", "", line)
    assert seen.endswith("  ClientError: xx\N{HORIZONTAL ELLIPSIS}")
    assert len(seen) <= 60
    assert any(jobs.failure in line for line in printed(invoke, "describe", "j"))


def test_nobody_need_look(
    jobs: FakeService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`windtunnel ps >&-`: Python has no stdout then."""
    start(jobs)
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["ps"]) == 0
    sys.stdout.close()
    assert capsys.readouterr().err == ""


def test_logs_of_a_job_that_failed_before_it_printed(jobs: FakeService, invoke: Invoke) -> None:
    """There is no log, which exit code and message say, with the reason and what to do."""
    jobs.failure = REASON
    start(jobs, "j", *FAILS)
    captured = invoke("logs", "j", exits=1)
    assert captured.out == ""
    assert captured.err.startswith("windtunnel: j has no log: ClientError: Data download failed: the bucket")
    assert "next: correct what the reason names" in captured.err


def test_logs_end_with_why_the_job_failed(jobs: FakeService, invoke: Invoke) -> None:
    """Beside the log, on stderr; a log was printed, so all is well with the command."""
    jobs.failure = "AlgorithmError: no"
    start(jobs, "j", *COMPLETES[:-1], ("Failed", "Failed", "", {}))
    for follow in ([], ["-f"]):
        told = invoke("logs", "j", *follow)
        assert told == ("one\ntwo\nthree\n", "windtunnel: j has failed: AlgorithmError: no\n")


def test_logs_of_a_job_that_reached_max_run_say_so(jobs: FakeService, invoke: Invoke) -> None:
    """Its log ends in the middle."""
    start(jobs, "j", *COMPLETES[:-1], ("Stopped", "MaxRuntimeExceeded", "", {}))
    assert invoke("logs", "j", "-f").err == "windtunnel: j has not completed: it reached max_run.\n"


def test_the_last_lines(jobs: FakeService, invoke: Invoke) -> None:
    """Of a log that is whole, and of one that goes on: then all that comes after them."""
    start(jobs)
    assert printed(invoke, "logs", "-n", "3", "j") == ["two", "three", "four"]
    assert printed(invoke, "logs", "-n", "1e20", "j")[-1] == "four"  # more than there can be is no error
    start(jobs, "k", ended=False)
    jobs.describe_job("k")  # Starting
    assert printed(invoke, "logs", "k", "-f", "-n", "1") == ["three", "four"]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "x", "1e400", "nan"])
def test_a_number_that_is_none(value: str, invoke: Invoke) -> None:
    """What was given and how to write it."""
    assert f"argument -n/--lines: '{value}'" in invoke("logs", "j", f"-n={value}", exits=2).err
