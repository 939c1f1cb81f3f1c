"""The last sound copy of a record, for the day on which the file itself is found damaged."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

LARGEST_BYTES = 32 << 20
"""Of a longer record no copy is made: it would cost a second of each start, and the room twice."""


def copy_path(record: Path) -> Path:
    """Where the copy is."""
    return record.with_name(record.name + "-sound")


def copied_at(record: Path) -> datetime | None:
    """When the copy was made, on this machine's clock; None: there is none."""
    try:
        return datetime.fromtimestamp(copy_path(record).stat().st_mtime).astimezone()
    except OSError:
        return None


def keep(record: Path) -> None:
    """Copy a record that has just been found sound. Whole or not at all; a full disk is no error."""
    made = record.with_name(record.name + "-sound-new")
    with suppress(OSError, sqlite3.OperationalError):
        if record.stat().st_size > LARGEST_BYTES:
            return
        made.unlink(missing_ok=True)
        with closing(sqlite3.connect(record, isolation_level=None)) as db:
            db.execute("VACUUM INTO ?", (str(made),))
        made.replace(copy_path(record))
    made.unlink(missing_ok=True)


def restore(record: Path) -> Path:
    """Put the copy in the record's place; where the damaged file is now.

    Raises:
        FileNotFoundError: there is no copy.
    """
    if copied_at(record) is None:
        raise FileNotFoundError(f"{copy_path(record)} is not there: no copy of {record} was made")
    aside = record.with_name(f"{record.name}-damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    # The log beside it is of the damaged file: SQLite would replay it into the copy.
    for part in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            record.with_name(record.name + part).rename(aside.with_name(aside.name + part))
    with suppress(FileNotFoundError):
        record.rename(aside)
    copy_path(record).replace(record)
    return aside
