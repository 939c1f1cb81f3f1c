"""`windtunnel doctor` says what is so, and offers nothing that would lose a sound record."""

from __future__ import annotations

from pathlib import Path

import pytest

from windtunnel_local.doctor import examine, restore_record
from windtunnel_local.runner.runner_kind import Check
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.settings import Settings
from windtunnel_local.store import SqliteStore


def check(settings: Settings, name: str) -> Check:
    """The check of that name."""
    return next(found for found in examine(settings) if found.name == name)


def settings_of(home: Path) -> Settings:
    """Of a runner whose own checks ask no engine."""
    return Settings(home=home, image="none", runner="process")


def test_a_record_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    """As on a file system that is read-only: putting back a copy would forget jobs that are all there."""
    path = tmp_path / "state.sqlite"
    for _ in range(2):
        store = SqliteStore(path)
        store.database.keep_sound_copy()
        store.close()
    (tmp_path / "state.sqlite-wal").mkdir()  # no log can be opened beside it, by root neither
    found = check(settings_of(tmp_path), "record")
    assert not found.ok
    assert f"{path} cannot be opened: unable to open database file" in found.detail
    assert "damaged" not in found.detail and "--restore" not in found.detail
    with pytest.raises(WindtunnelError, match="cannot be opened"):
        restore_record(settings_of(tmp_path))
    assert path.exists()


def test_a_home_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """By trying, and leaving nothing: root may write to all that has the right bits, and not to /proc."""
    assert check(settings_of(tmp_path / "a" / "b"), "home") == Check("home", True, str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    for home in (Path("/proc/foo"), tmp_path / "file", tmp_path / "file" / "below"):
        found = check(settings_of(home), "home")
        assert not found.ok
        assert found.detail.startswith(f"{home} cannot be written: ")
        assert "WINDTUNNEL_HOME" in found.fix
