"""Runners are found by their names, and say what they need of a machine."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from windtunnel_local import commands
from windtunnel_local.runner import RUNNERS, runner_kind
from windtunnel_local.settings import Settings


def settings(name: str, home: Path) -> Settings:
    """Of a machine that has nothing."""
    return Settings(home, "none:1", name, environment={"WINDTUNNEL_SIM_PYTHON": str(home / "python")})


@pytest.mark.parametrize("name", RUNNERS)
def test_a_runner_is_made_by_its_name(name: str, tmp_path: Path) -> None:
    """Without touching the machine."""
    runner = runner_kind(name).make(settings(name, tmp_path))
    assert runner.name == name
    runner.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", RUNNERS)
def test_what_a_runner_misses_comes_with_its_fix(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finding for each thing, in words for `windtunnel doctor`."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    checks = runner_kind(name).checks(settings(name, tmp_path))
    assert checks
    for check in checks:
        assert not check.ok
        assert "WINDTUNNEL_" in check.detail or "Docker" in check.detail


@pytest.mark.parametrize("name", RUNNERS)
@pytest.mark.parametrize("command", [commands.image_build, commands.image_status])
def test_the_image_is_that_of_the_runner(
    command: Callable[..., int],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`windtunnel image` asks the runner that the settings name; one without an image says what to do."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert command(settings(name, tmp_path), as_json=True) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    has_image = runner_kind(name).image is not None
    assert ("Docker" in error) == has_image
    assert ("unset or change WINDTUNNEL_RUNNER" in error) != has_image


@pytest.mark.parametrize(
    ("name", "record"),
    [("process", "jobs/{}/process/algo-1/run.json"), ("slurm", "slurm/{}/algo-1/orders.json")],
)
def test_jobs_are_told_while_others_end(name: str, record: str, tmp_path: Path) -> None:
    """A folder that goes at this moment is another job's, and no fault of the one that asks."""
    runner, through = runner_kind(name).make(settings(name, tmp_path)), threading.Event()

    def make(job: str) -> Path:
        path = tmp_path / record.format(job)
        path.parent.mkdir(parents=True)
        path.touch()
        return path

    def come_and_go() -> None:
        while not through.is_set():
            make("other")
            shutil.rmtree(tmp_path / record.partition("/")[0] / "other")

    make("stays")
    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        found = [runner.jobs() for _ in range(3000)]
        until = time.monotonic() + 60
        while all(jobs == {"stays"} for jobs in found) and time.monotonic() < until:
            found.append(runner.jobs())  # on a busy machine the other thread has not begun yet
    finally:
        through.set()
        thread.join()
    assert {job for jobs in found for job in jobs} == {"stays", "other"}
    assert all("stays" in jobs for jobs in found)
