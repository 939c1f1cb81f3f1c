"""How a host is told to have ended that was killed, by what Slurm says of its job at that moment."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from windtunnel_local.runner.slurm import SlurmRunner, SlurmSettings, queue_view
from windtunnel_local.runner.slurm.commands import Slurm, SlurmJob
from windtunnel_local.runner.without_container.interpreter import Interpreter

_NUMBER = 7


class Killed:
    """A job of one host, and a Slurm that says of it what it is told to."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._host = home / "slurm" / "job" / "algo-1"
        self._host.mkdir(parents=True)
        (self._host.parent / "mark").write_text("m")
        (self._host.parent / "number").write_text(str(_NUMBER))
        self._write("run", pid=1, started=1.0)
        self.state = "RUNNING"
        self.asked = 0
        monkeypatch.setattr(Slurm, "jobs", lambda _: self._jobs())
        self._runner = SlurmRunner(SlurmSettings(home, Interpreter(Path(sys.executable), {})))

    def _jobs(self) -> list[SlurmJob]:
        self.asked += 1
        return [SlurmJob(_NUMBER, self.state, "windtunnel:m", "node1", "None")]

    def _write(self, name: str, **content: object) -> None:
        (self._host / f"{name}.json").write_text(json.dumps(content))

    def kill(self) -> None:
        """The script, and not its supervisor, which writes that down."""
        self._write("exit", exit_code=137, finished=2.0, told=False)

    def seen(self) -> tuple[str, bool]:
        """Its status, and whether the platform took its place away."""
        state = self._runner.state("job", "algo-1")
        return state.status, state.lost


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Killed:
    """Runs, and Slurm has just said so."""
    job = Killed(tmp_path, monkeypatch)
    assert job.seen() == ("running", False)
    return job


def test_an_answer_of_before_the_kill_does_not_count(killed: Killed) -> None:
    """It says RUNNING of a node that was lost since; taken at its word, RetryStrategy would not start again."""
    killed.state = "NODE_FAIL"
    killed.kill()
    assert killed.seen() == ("exited", True)


def test_a_job_that_slurm_is_ending_is_waited_for(killed: Killed, monkeypatch: pytest.MonkeyPatch) -> None:
    """squeue calls it COMPLETING until its last process is gone, and only then by the reason."""
    now = time.monotonic()
    monkeypatch.setattr(queue_view, "time", SimpleNamespace(monotonic=lambda: now))
    killed.state = "COMPLETING"
    killed.kill()
    assert [killed.seen() for _ in range(20)] == [("running", False)] * 20
    assert killed.asked <= 3, "20 looks at one moment"
    killed.state = "NODE_FAIL"
    now += 2
    assert killed.seen() == ("exited", True)


def test_a_kill_in_a_slurm_job_that_goes_on_is_the_hosts_own(killed: Killed) -> None:
    """And stays so, whatever becomes of the Slurm job later."""
    killed.kill()
    assert killed.seen() == ("exited", False)
    killed.state = "NODE_FAIL"
    assert killed.seen() == ("exited", False)
