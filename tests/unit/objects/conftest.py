"""Objects in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from windtunnel_local.objects import FileObjects


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    """With the bucket `bucket`, and nothing in it."""
    store = FileObjects(tmp_path / "objects")
    store.create_bucket("bucket")
    return store
