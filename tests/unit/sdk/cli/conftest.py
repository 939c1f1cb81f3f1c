"""The command line over the fake service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sdk.fake_service import FakeService
from windtunnel.session import resolve
from windtunnel.session.local import LocalSession


@pytest.fixture
def jobs(local: LocalSession, monkeypatch: pytest.MonkeyPatch, project: Path) -> FakeService:
    """The service behind the command line's session."""
    monkeypatch.setattr(resolve, "shared_local_session", lambda: local)
    assert isinstance(local.service, FakeService)
    return local.service
