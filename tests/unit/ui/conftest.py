"""Counters for the pages' tests, and a home without prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.counters import counters

__all__ = ["counters"]


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINDTUNNEL_HOME", str(tmp_path / "home"))
