"""The command line over the fake service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.counters import counters
from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService
from windtunnel.session import resolve
from windtunnel.session.local import LocalSession

__all__ = ["counters"]


@pytest.fixture
def jobs(local: LocalSession, monkeypatch: pytest.MonkeyPatch, project: Path) -> FakeService:
    """The service behind the command line's session."""
    monkeypatch.setattr(resolve, "shared_local_session", lambda: local)
    assert isinstance(local.service, FakeService)
    return local.service


@pytest.fixture
def counters_file(tmp_path: Path) -> Callable[[Any], str]:
    """Writes what was counted to a counters.json, and returns its path."""

    def written(counted: Any) -> str:
        path = tmp_path / "counters.json"
        path.write_text(json.dumps(counted))
        return str(path)

    return written


@pytest.fixture
def rehearsal(jobs: FakeService, invoke: Invoke) -> Callable[[Any], None]:
    """Starts the job ``j``, unless it is there, and stores what it counted."""

    def stored(counted: Any) -> None:
        if "j" not in jobs.requests:
            invoke("run", "src/train.py", "--job-name", "j")
        jobs.store("j", "windtunnel/counters.json", json.dumps(counted).encode())

    return stored
