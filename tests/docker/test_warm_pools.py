"""Warm pools with real containers: the next job starts in the kept one, and finds nothing of the last."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docker.conftest import SCRIPTS, estimator, found_by, kill_server, own_session
from tests.waiting import wait_for
from windtunnel import LocalSession, TrainingJob

pytestmark = pytest.mark.docker

PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSession]:
    """One whose backend has no containers but those of these tests."""
    with own_session(tmp_path_factory.mktemp("home")) as session:
        yield session


def warm_job(session: LocalSession, data: Path, epochs: int, **environment: str) -> TrainingJob:
    """A job that asks for its container to be kept, run to its end."""
    job = estimator(
        session,
        "littering.py",
        distribution={"torch_distributed": {"enabled": True}},
        keep_alive_period_in_seconds=300,
        hyperparameters={"epochs": epochs},
        environment=environment,
    ).fit({"train": str(data)}, wait=False)
    job.wait(logs=False)
    return job


def containers(session: LocalSession) -> list[str]:
    """Ids of all containers of the session's backend."""
    label = f"label=windtunnel.home={session.home}"
    done = subprocess.run(
        ["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_second_job_in_the_kept_container(session: LocalSession, tmp_path: Path) -> None:
    """The same container, also when the server was killed in between; files, variables, processes and code
    of the first job are gone, though it says itself that it has ended and that all is clean; each log is
    whole and its own; the pool ends when it is told to.
    """
    data = [tmp_path / "one", tmp_path / "two"]
    for folder in data:
        folder.mkdir()
        (folder / "part.txt").write_text(folder.name)
    first = warm_job(session, data[0], 1, SECRET="of the first")
    (kept,) = containers(session)
    assert first.describe()["WarmPoolStatus"] == {"Status": "Available"}
    kill_server(session)
    second = warm_job(session, data[1], 2)
    assert containers(session) == [kept]

    clean: dict[str, Any] = {"files": [], "processes": [], "folder": "/opt/ml/code"}
    before, after = found_by(first), found_by(second)
    for found in (before, after):
        assert set(found.pop("code")) - {"__pycache__"} == {
            path.name for path in SCRIPTS.iterdir() if path.name != "__pycache__"
        }
    own: dict[str, Any] = {
        "cache": [],
        "secret": "of the first",
        "train": ["one"],
        "arguments": ["--epochs", "1"],
    }
    assert before == {**clean, **own}
    own = {"cache": ["wheel"], "secret": None, "train": ["two"], "arguments": ["--epochs", "2"]}
    assert after == {**clean, **own}

    for job in (first, second):
        lines = list(job.logs())
        assert sum("no end of line" in line for line in lines) == 1
        assert sum("Reporting training SUCCESS" in line for line in lines) == 1
        assert not any("windtunnel:end" in line for line in lines)
        assert (job.download_model(tmp_path / job.name) / "name").read_text() == job.name

    assert first.describe()["WarmPoolStatus"]["ReusedByJob"] == second.name
    client = session.service.client("sagemaker")  # type: ignore[attr-defined]
    client.update_training_job(TrainingJobName=second.name, ResourceConfig={"KeepAlivePeriodInSeconds": 0})
    wait_for(lambda: second.describe()["WarmPoolStatus"]["Status"] == "Terminated", patience_s=PATIENCE_S)
    wait_for(lambda: not containers(session), patience_s=PATIENCE_S)
