"""Files of other versions, of other programs, damaged ones; and what deleting gives back."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.unit.store.samples import batch, named
from tests.waiting import wait_for
from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.store import SqliteStore, sound_copy
from windtunnel_local.store.database import Database
from windtunnel_local.store.opening import check_file
from windtunnel_local.store.sqlite import Tables
from windtunnel_local.store.upkeep import remove_lines


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")


def of_another_program_with_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE jobs (url TEXT); PRAGMA user_version = 1; PRAGMA application_id = 7")


def text(path: Path) -> None:
    path.write_text("these are my notes, and no database at all")


def torn(path: Path) -> None:
    store = SqliteStore(path)
    store.insert_job(named(path.parent, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    store.append_log("s", batch(*["x" * 500] * 100, cursor="c"), 1)
    store.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 4096 * 4096)


def scribbled(path: Path) -> None:
    torn(path)
    path.unlink()
    store = SqliteStore(path)
    store.insert_job(named(path.parent, "a"))
    store.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 8192)


def emptied(path: Path) -> None:
    SqliteStore(path).close()
    path.write_bytes(b"")


def of_version(version: int, path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (of_another_program, "database of another program.*Nothing was changed"),
        (of_another_program_with_version, "database of another program"),
        (text, "no SQLite file.*WINDTUNNEL_HOME"),
        (torn, "damaged.*Nothing was changed.*sound copy"),
        (scribbled, "damaged.*Nothing was changed"),
        (emptied, "is empty, and was not before.*Nothing was changed.*sound copy"),
        (partial(of_version, 99), "newer Windtunnel.*Nothing was changed"),
        (partial(of_version, 3), "older Windtunnel.*Nothing was changed"),
    ],
)
def test_a_file_that_is_not_ours_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    """With a message that names the file and the way out, and not a byte changed."""
    path = tmp_path / "state.sqlite"
    make(path)
    before = path.read_bytes()
    files = {entry.name for entry in tmp_path.iterdir() if entry.is_file()}
    with pytest.raises(WindtunnelError, match=words) as error:
        SqliteStore(path)
    assert str(path) in str(error.value)
    assert path.read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir() if entry.is_file()} == files


def test_damage_far_into_a_long_file_is_found_when_all_is_read(tmp_path: Path) -> None:
    """By `windtunnel doctor`: a start does not read that far."""
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    for part in range(20):
        store.append_log("s", batch(*["x" * 20_000] * 100, cursor=str(part)), 1)
    store.close()
    assert path.stat().st_size > 32 << 20
    check_file(path, whole=True)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xa5" * 65536)
    check_file(path)
    with pytest.raises(WindtunnelError, match=r"damaged.*Nothing was changed"):
        check_file(path, whole=True)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Not a traceback of the database's."""
    (tmp_path / "state.sqlite").mkdir()
    with pytest.raises(WindtunnelError, match="cannot be read"):
        SqliteStore(tmp_path / "state.sqlite")
    with pytest.raises(WindtunnelError, match="cannot be opened: unable to open database file"):
        SqliteStore(tmp_path / "none" / "state.sqlite")


def test_an_empty_file_is_a_new_record(tmp_path: Path) -> None:
    """So is one whose maker was killed before its first commit."""
    path = tmp_path / "state.sqlite"
    path.touch()
    SqliteStore(path).close()
    unborn = tmp_path / "unborn.sqlite"
    with closing(sqlite3.connect(unborn)) as db:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
    store = SqliteStore(unborn)
    store.insert_job(named(tmp_path, "a"))
    store.close()


def test_deleting_gives_space_back(tmp_path: Path) -> None:
    """Lines go bit by bit, unseen from the first moment on; then the file is small again."""
    path = tmp_path / "state.sqlite"
    database = Database(path)
    store = Tables(database)  # without the thread: the steps are taken here
    for number in range(20):
        name = f"job-{number}"
        store.insert_job(named(tmp_path, name), {"k": "v"})
        store.open_log_stream(name, "algo-1", f"{name}/s", 1)
        store.append_log(f"{name}/s", batch(*["x" * 200] * 300, cursor="c"), 1)
    full = database.read("PRAGMA page_count")[0][0] * 4096
    for number in range(20):
        store.delete_job(f"job-{number}")
    assert store.log_streams("") == []
    assert store.read_log("job-1/s", 0, 10) == []
    assert store.latest_log_streams(None, 9, descending=True) == []
    assert store.log_streams_begun((0, ""), 10**9, 9) == []
    store.insert_job(named(tmp_path, "job-1"))
    store.open_log_stream("job-1", "algo-1", "job-1/s", 1)
    store.append_log("job-1/s", batch("new", cursor="c"), 1)
    steps = 0
    while remove_lines(database, 100) or database.give_back(64):
        steps += 1
    assert steps > 60, "each step is small"
    assert [e.message for e in store.read_log("job-1/s", 0, 10)] == ["new"]
    assert database.read("SELECT count(*) FROM log_events") == [(1,)]
    database.close()
    assert path.stat().st_size < full / 10


def test_the_store_tidies_up_by_itself(tmp_path: Path) -> None:
    """Also what an earlier process left."""
    path = tmp_path / "state.sqlite"
    database = Database(path)
    store = Tables(database)
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    store.append_log("s", batch("x", cursor="c"), 1)
    store.delete_job("a")
    database.close()
    again = SqliteStore(path)
    wait_for(lambda: again.database.read("SELECT count(*) FROM log_events") == [(0,)])
    assert again.database.read("SELECT count(*) FROM log_streams") == [(0,)]
    again.close()


def test_the_write_ahead_log_shrinks_again(tmp_path: Path) -> None:
    """A reader of another program keeps it long for as long as it reads; then it is folded in and emptied."""
    path = tmp_path / "state.sqlite"
    database = Database(path)
    store = Tables(database)
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN")
        foreign.execute("SELECT count(*) FROM jobs").fetchall()
        for number in range(18):
            store.append_log("s", batch("x" * (1 << 20), cursor=str(number)), 1)
        assert database.log_bytes() > 16 << 20
        assert not database.fold_log_in(), "not while it reads"
        foreign.execute("COMMIT")
    assert database.fold_log_in()
    assert database.log_bytes() == 6 << 20
    assert len(store.read_log("s", 0, 100)) == 5, "no more than may be held at once"
    assert [event.sequence for event in store.read_log("s", 17, 100)] == [17]
    database.close()


def test_a_copy_taken_with_its_log_opens(tmp_path: Path) -> None:
    """What was committed is in the file and its write-ahead log together."""
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    store.insert_job(named(tmp_path, "a"))
    other = tmp_path / "copy"
    other.mkdir()
    for part in ("", "-wal"):
        shutil.copy(f"{path}{part}", other / f"state.sqlite{part}")
    store.close()
    copied = SqliteStore(other / "state.sqlite")
    assert copied.get_job("a") is not None
    copied.close()


def test_a_damaged_file_is_put_back_from_its_last_sound_copy(tmp_path: Path) -> None:
    """With the jobs of that start; the damaged file is kept, and none of its log is replayed."""
    path = tmp_path / "state.sqlite"
    store = SqliteStore(path)
    store.insert_job(named(tmp_path, "a"))
    store.close()
    SqliteStore(path).close()
    path.write_bytes(b"SQLite format 3\0" + b"\xa5" * 8192)
    with pytest.raises(WindtunnelError, match="doctor --restore"):
        SqliteStore(path)
    aside = sound_copy.restore(path)
    assert aside.read_bytes().endswith(b"\xa5")
    restored = SqliteStore(path)
    assert restored.get_job("a") is not None
    restored.close()
