"""A backend of the tests' own, with real containers."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import runs
from tests.waiting import wait_for
from windtunnel import LocalSession, PyTorch, TrainingJob
from windtunnel_local.runner.docker import Engine
from windtunnel_local.runner.docker.base import ensure_base

SCRIPTS = Path(__file__).parent / "scripts"
MEMORY_GIB = "4"
PATIENCE_S = 1200
"""For what takes half a minute: a busy machine is no failure."""
QUICKLY_COMPILED = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
"""A few steps of small models: better code would save less than it takes to make."""


@pytest.fixture(scope="package")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSession]:
    """A session that all tests here share."""
    with own_session(tmp_path_factory.mktemp("home")) as session:
        yield session


@pytest.fixture(scope="package")
def base() -> str:
    """A small Debian without a `train`: pulled, or made here."""
    engine = Engine()
    try:
        return ensure_base(engine.client(), None, print)
    finally:
        engine.close()


@contextmanager
def own_session(home: Path) -> Iterator[LocalSession]:
    """A session whose backend runs in a home of its own; its containers may have 4 GiB each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDTUNNEL_MEMORY_GIB", MEMORY_GIB)
        patch.setenv("WINDTUNNEL_STOP_GRACE_SECONDS", "10")
        session = LocalSession(home=home)
        # By itself it asks up to thirty times a second, and the processors are the jobs'.
        session.least_poll_s = session.log_poll_s = session.describe_poll_s = 0.3
        session.endpoint()
        yield session
    running = session.backend.running()
    if running is not None:
        os.kill(running.pid, signal.SIGTERM)


def kill_server(session: LocalSession) -> None:
    """SIGKILL for its backend; returns when it is dead, which a busy machine may put off."""
    process = session.backend.ensure().pid
    os.kill(process, signal.SIGKILL)
    wait_for(lambda: not runs(process), "its death", patience_s=PATIENCE_S)


def estimator(session: LocalSession, script: str = "behave.py", **arguments: Any) -> PyTorch:
    """An estimator for one of the scripts here, on trn1.2xlarge."""
    arguments["environment"] = QUICKLY_COMPILED | arguments.get("environment", {})
    settings: dict[str, Any] = {
        "source_dir": str(SCRIPTS),
        "framework_version": "2.9",
        "instance_type": "ml.trn1.2xlarge",
        "instance_count": 1,
        "max_run": 600,
        "session": session,
        **arguments,
    }
    return PyTorch(script, **settings)


def found_by(job: TrainingJob) -> dict[str, Any]:
    """What a script has printed behind FOUND."""
    (line,) = [line for line in job.logs() if line.startswith("FOUND ")]
    result: dict[str, Any] = json.loads(line.removeprefix("FOUND "))
    return result
