"""Opening the record: a check that the file is ours before anything is written, and the tables of a new file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path

from windtunnel_local.service.ground.errors import WindtunnelError
from windtunnel_local.store.reserve import reserve_path
from windtunnel_local.store.sound_copy import LARGEST_BYTES, copied_at

FILE = "state.sqlite"
"""The record's file name in the home."""
APPLICATION_ID = 0x57544E4C
"""SQLite's application_id of every file of ours ("WTNL")."""
SCHEMA_VERSION = 4

_MAGIC = b"SQLite format 3\0"


class RecordUnreadable(WindtunnelError):
    """The file cannot be read now (permissions, disk). It may be sound."""


def check_file(path: Path, *, whole: bool = False) -> None:
    """Refuse a file that is another program's, damaged or of another schema version. Does not change the file.

    A file above `LARGEST_BYTES` is searched for damage only with ``whole``. A missing file is accepted.

    Raises:
        RecordUnreadable: the file cannot be read or opened.
        WindtunnelError: the file is refused; the message says why, and what to do.
    """
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise RecordUnreadable(f"{path} cannot be read: {error}.") from error
    if not head:
        if reserve_path(path).exists():
            raise WindtunnelError(f"{path} is empty, and was not before. {_way_out(path)}")
        return
    if head != _MAGIC:
        raise WindtunnelError(f"{path} is no SQLite file. {_way_out(path)}")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            _check(db, path, whole)
    except sqlite3.OperationalError as error:  # says nothing about the content, as on a read-only file system
        raise RecordUnreadable(
            f"{path} cannot be opened: {error}. It is as it was. Look at its disk and at its permissions, or set"
            " WINDTUNNEL_HOME to another folder."
        ) from error
    except sqlite3.DatabaseError as error:
        raise WindtunnelError(f"{path} is damaged: {error}. {_way_out(path)}") from error


def _check(db: sqlite3.Connection, path: Path, whole: bool) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if version == 0 and not tables and application in (0, APPLICATION_ID):
        return  # its creator was killed before the first commit
    if application != APPLICATION_ID or version == 0:
        raise WindtunnelError(f"{path} is a database of another program. {_way_out(path)}")
    if version != SCHEMA_VERSION:
        raise WindtunnelError(
            f"{path} was written by {'a newer' if version > SCHEMA_VERSION else 'an older'} Windtunnel (schema"
            f" {version}, this one knows {SCHEMA_VERSION}). Nothing was changed. Use that Windtunnel, move the file"
            " away (a new record begins empty), or set WINDTUNNEL_HOME to another folder."
        )
    # Takes about 0.1 s. A larger file is checked as it is read, and by `windtunnel doctor`.
    if whole or path.stat().st_size <= LARGEST_BYTES:
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise WindtunnelError(f"{path} is damaged: {found.splitlines()[-1]}. {_way_out(path)}")


def _way_out(path: Path) -> str:
    copied = copied_at(path)
    restored = (
        ""
        if copied is None
        else f" `windtunnel doctor --restore` puts back the sound copy of {copied:%Y-%m-%d %H:%M:%S}; what came after"
        " it is forgotten."
    )
    return (
        f"Nothing was changed.{restored} Move it away (a new record begins empty) or put a sound copy in its place, or"
        " set WINDTUNNEL_HOME to another folder."
    )


def prepare(db: sqlite3.Connection) -> None:
    """Create the tables in a new file, in one transaction."""
    is_new = db.execute("PRAGMA user_version").fetchone()[0] == 0
    if is_new:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first page is written
    db.execute("PRAGMA journal_mode = WAL")
    # When a commit returns, it is on the disk and survives a loss of power.
    db.execute("PRAGMA synchronous = FULL")
    if not is_new:
        return
    schema = resources.files("windtunnel_local.store").joinpath("schema.sql").read_text()
    try:
        db.executescript(
            f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {SCHEMA_VERSION};"
            f" PRAGMA application_id = {APPLICATION_ID}; COMMIT;"
        )
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
