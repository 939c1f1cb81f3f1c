"""The last sound copy of a record, from which a damaged record can be restored."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

LARGEST_BYTES = 32 << 20
"""A larger record is not copied: that would cost a second at each start, and twice the disk space."""


def copy_path(record: Path) -> Path:
    """The path of a record's copy."""
    return record.with_name(record.name + "-sound")


def copied_at(record: Path) -> datetime | None:
    """When the copy was made, in local time; None if there is no copy."""
    try:
        return datetime.fromtimestamp(copy_path(record).stat().st_mtime).astimezone()
    except OSError:
        return None


def keep(record: Path) -> None:
    """Copy a record that has just been found sound. The copy is complete or not made; a full disk is no error."""
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
    """Put the copy in the record's place. Returns the new path of the damaged file.

    Raises:
        FileNotFoundError: there is no copy.
    """
    if copied_at(record) is None:
        raise FileNotFoundError(f"{copy_path(record)} is not there: no copy of {record} was made")
    aside = record.with_name(f"{record.name}-damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    # The write-ahead log belongs to the damaged file: SQLite would replay it into the copy.
    for part in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            record.with_name(record.name + part).rename(aside.with_name(aside.name + part))
    with suppress(FileNotFoundError):
        record.rename(aside)
    copy_path(record).replace(record)
    return aside
