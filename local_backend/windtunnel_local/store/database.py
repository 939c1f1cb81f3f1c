"""The SQLite file and its connections: one writes, several read.

With a write-ahead log the readers never wait for a commit to reach the disk.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from windtunnel_local.service.ground.errors import StoreUnavailable, WindtunnelError
from windtunnel_local.store import sound_copy
from windtunnel_local.store.opening import check_file, prepare
from windtunnel_local.store.reserve import Reserve, lengthen, reserve_path

_BUSY_TIMEOUT_S = 10.0
_IDLE_READERS = 4
LONGEST_SEARCH_S = 20.0
STEPS_BETWEEN_LOOKS = 20_000
"""SQLite's virtual-machine instructions between two checks of a search's time."""
_WAL_LIMIT_BYTES = 16 << 20
_COMMITS_BETWEEN_LOOKS = 200

Row = tuple[Any, ...]


class Database:
    """One SQLite file. Thread-safe. The classes of the tables (`Table`) read and write through it."""

    def __init__(
        self, path: Path, prepare_searcher: Callable[[sqlite3.Connection], None] | None = None
    ) -> None:
        """Open the file; create it if it is missing.

        ``prepare_searcher`` is called with the connection that `search` uses.

        Raises:
            WindtunnelError: the file is another program's, damaged, or of another schema version. It is not changed.
        """
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._write_lock = threading.Lock()
        self._search_lock = threading.Lock()
        self._commits = 0
        self._closed = False
        self.wanted = threading.Event()
        """Set when the upkeep thread has something to do."""
        self.reserve = Reserve(reserve_path(path))
        opened: list[sqlite3.Connection] = []
        try:
            check_file(path)
            self._writer = _connect(path, opened)
            self._prepare()
            _configure(self._writer)
            self._idle: deque[sqlite3.Connection] = deque([_reader(path, opened)])
            self._searcher = _reader(path, opened)
            if prepare_searcher is not None:
                prepare_searcher(self._searcher)
        except BaseException as error:
            for connection in opened:
                connection.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise WindtunnelError(
                    f"{path} cannot be opened: {error}. It is as it was. Look at the space on its disk and at its"
                    " permissions, or set WINDTUNNEL_HOME to another folder."
                ) from error
            raise
        self.reserve.take()
        lengthen(self._log)

    def close(self) -> None:
        """Close the file; calls after this raise. Idempotent."""
        with self._write_lock, self._search_lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._searcher.close()
            self._writer.close()  # the last connection writes the log into the file

    def keep_sound_copy(self) -> None:
        """Copy the file, which was found sound when it was opened: see `sound_copy`."""
        sound_copy.keep(self._path)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: commits at the end of the block, rolls back on any exception.

        Raises:
            StoreUnavailable: the file cannot be written, or is damaged.
        """
        with self._write_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException as error:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    if _is_full(error) and self.reserve.give(self._log):
                        self.wanted.set()  # a retry has space now; the reserve is taken again later
                    raise StoreUnavailable(
                        f"The record of jobs in this Windtunnel home cannot be written: {error}. Free space on"
                        " its disk, then try again."
                    ) from error
                if _is_damage(error):
                    raise self._damaged(error) from error
                raise
        self._commits += 1
        if self._commits % _COMMITS_BETWEEN_LOOKS == 0:
            self.wanted.set()

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a short query. Raises what `reader` raises."""
        with self.reader() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """A read-only connection for several short queries, without waiting. Use it only within the block.

        Raises:
            StoreUnavailable: the file is damaged, or cannot be read now.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._another()
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            self._refuse(error)
        finally:
            if self._closed or len(self._idle) >= _IDLE_READERS:
                connection.close()
            else:
                self._idle.append(connection)

    def search(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query that may scan whole tables. One runs at a time, so that short queries go on.

        Raises:
            StoreUnavailable: as `reader`; or the search took too long (while it reads, the log cannot be truncated).
        """
        with self._search_lock:
            until = time.monotonic() + LONGEST_SEARCH_S
            self._searcher.set_progress_handler(lambda: time.monotonic() > until, STEPS_BETWEEN_LOOKS)
            try:
                return self._searcher.execute(sql, values).fetchall()
            except sqlite3.DatabaseError as error:
                if "interrupted" in str(error):
                    raise StoreUnavailable(
                        f"The search took more than {LONGEST_SEARCH_S:.0f} s. Narrow it, for example by"
                        " CreationTime or TrainingJobStatus."
                    ) from error
                self._refuse(error)
            finally:
                self._searcher.set_progress_handler(None, 0)

    def _another(self) -> sqlite3.Connection:
        if self._closed:
            raise sqlite3.ProgrammingError("The record is closed.")
        try:
            return _reader(self._path, [])
        except sqlite3.OperationalError as error:
            self._refuse(error)

    def _prepare(self) -> None:
        try:
            prepare(self._writer)
        except sqlite3.OperationalError as error:
            if not (_is_full(error) and self.reserve.give(self._log)):
                raise
            prepare(self._writer)

    # --- tidying up ---

    def fold_log_in(self) -> bool:
        """Write the write-ahead log into the file (a checkpoint), and truncate the log if it has grown long.

        SQLite makes checkpoints by itself, but truncates the log only if nobody reads. Returns whether the
        log is short now: another program that reads the file can keep it long for a while.
        """
        if self.log_bytes() <= _WAL_LIMIT_BYTES:
            return True
        with self._write_lock:
            self._writer.execute("PRAGMA busy_timeout = 500")
            try:
                busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.OperationalError:
                busy = 1  # a full disk: tried again later
            finally:
                lengthen(self._log)
                self._writer.execute(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT_S * 1000)}")
        return not busy

    def log_bytes(self) -> int:
        """The size of the write-ahead log, in bytes."""
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    def give_back(self, pages: int) -> bool:
        """Return up to ``pages`` free pages of the file to the file system; returns whether there are more."""
        with self._write_lock:
            if not self._writer.execute("PRAGMA freelist_count").fetchone()[0]:
                return False
            try:
                self._writer.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
            except sqlite3.OperationalError:
                return False  # a full disk: tried again later
            return bool(self._writer.execute("PRAGMA freelist_count").fetchone()[0])

    def _refuse(self, error: sqlite3.DatabaseError) -> NoReturn:
        """Raise `StoreUnavailable` for damage, and for what may pass (few descriptors): no job may fail for that."""
        if _is_damage(error):
            raise self._damaged(error) from error
        if isinstance(error, sqlite3.OperationalError):
            raise StoreUnavailable(
                f"The record of jobs in this Windtunnel home cannot be read now: {error}. Try again; if that does"
                " not help, look at its disk and at the limit of open files."
            ) from error
        raise error

    def _damaged(self, error: BaseException) -> StoreUnavailable:
        return StoreUnavailable(
            f"The record of jobs is damaged ({error}): {self._path}. Stop the backend, move the file away or"
            " put a copy in its place, and start again."
        )


class Table:
    """Base class of the tables, each of which is a part of `service.ground.ports.Store`."""

    def __init__(self, database: Database) -> None:
        """Use an open file."""
        self.database = database


def _connect(path: Path, opened: list[sqlite3.Connection]) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    opened.append(db)
    return db


def _reader(path: Path, opened: list[sqlite3.Connection]) -> sqlite3.Connection:
    db = _connect(path, opened)
    db.execute("PRAGMA query_only = ON")
    return db


def _configure(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")


def _is_full(error: sqlite3.OperationalError) -> bool:
    """Whether the disk is full. SQLite calls it an I/O error if the shared-memory file (-shm) cannot grow."""
    return "full" in str(error) or "disk I/O error" in str(error)


def _is_damage(error: BaseException) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and any(
        words in str(error) for words in ("malformed", "not a database")
    )
