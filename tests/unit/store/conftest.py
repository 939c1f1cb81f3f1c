"""A store of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from windtunnel_local.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Empty, in a file."""
    opened = SqliteStore(tmp_path / "state.sqlite")
    yield opened
    opened.close()
