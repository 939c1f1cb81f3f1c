"""Room that is kept for the record on a disk that others fill."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.store.samples import named
from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.store import SqliteStore, reserve


def test_it_takes_room_and_gives_it_back(tmp_path: Path) -> None:
    """Real room: a file of holes would take none."""
    kept, log = reserve.Reserve(tmp_path / "reserve"), tmp_path / "log"
    assert kept.take()
    assert kept.take()
    assert room_of(tmp_path / "reserve") >= 2 << 20
    assert kept.give(log)
    assert not kept.give(log)
    assert list(tmp_path.iterdir()) == [log]
    assert room_of(log) >= 2 << 20


def room_of(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_the_log_holds_room_that_only_the_record_can_take(store: SqliteStore, tmp_path: Path) -> None:
    """While a server runs; what SQLite finds after its last line does not matter to it, after a crash neither."""
    log = next(tmp_path.rglob("*-wal"))
    assert room_of(log) >= 6 << 20
    store.insert_job(named(tmp_path, "a"))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for part in (log, log.with_name("state.sqlite")):
        shutil.copy(part, crashed)
    with closing(SqliteStore(crashed / "state.sqlite")) as again:
        assert again.get_job("a") is not None
        assert room_of(crashed / log.name) >= 6 << 20
    assert not (crashed / log.name).exists()


def test_a_nearly_full_disk_is_not_made_fuller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last space is not ours."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4 << 20))
    assert not reserve.Reserve(tmp_path / "reserve").take()
    assert list(tmp_path.iterdir()) == []


def test_the_record_is_written_when_the_disk_is_full(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to meet the full disk is refused; who tries again finds the room that was kept."""
    kept = next(tmp_path.rglob("*-reserve"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(StoreUnavailable), store.database.transaction():
        raise sqlite3.OperationalError("database or disk is full")
    assert not kept.exists()
    store.insert_job(named(tmp_path, "a"))
    assert store.get_job("a") is not None
