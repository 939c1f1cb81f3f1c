"""Upkeep of the record in the background: delete old log lines, give space back, shorten the write-ahead log."""

from __future__ import annotations

import logging
import sqlite3
import threading

from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.store.database import Database

_log = logging.getLogger(__name__)

_LINES_A_STEP = 5_000
_PAGES_A_STEP = 512
_PAUSE_S = 0.01  # between two steps, so that others can write
_RETRY_S = 5.0


class Upkeep:
    """A thread that works in steps, each of which locks the file for milliseconds. Sleeps until `wanted` is set."""

    def __init__(self, database: Database) -> None:
        """Start the thread, which looks at once for what an earlier process has left."""
        self._db = database
        self._ended = threading.Event()
        self._db.wanted.set()
        self._thread = threading.Thread(target=self._run, name="store-upkeep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after its current step; waits for it. Idempotent."""
        self._ended.set()
        self._db.wanted.set()
        self._thread.join()

    def _run(self) -> None:
        retry = False
        self._db.keep_sound_copy()
        while not self._ended.is_set():
            self._db.wanted.wait(_RETRY_S if retry else None)
            self._db.wanted.clear()
            try:
                while not self._ended.is_set() and self._step():
                    self._ended.wait(_PAUSE_S)
                retry = not self._ended.is_set() and not (self._db.fold_log_in() and self._db.reserve.take())
            except (StoreUnavailable, sqlite3.DatabaseError) as error:
                _log.warning("The record's upkeep will be tried again: %s", error)
                retry = True

    def _step(self) -> bool:
        """Do one step; returns whether there is more to do."""
        return remove_lines(self._db, _LINES_A_STEP) or self._db.give_back(_PAGES_A_STEP)


def remove_lines(database: Database, limit: int) -> bool:
    """Delete up to ``limit`` lines of a removed stream, and the stream with its last; returns whether there was one."""
    if not (rows := database.read("SELECT id FROM log_streams WHERE job IS NULL AND name IS NULL LIMIT 1")):
        return False
    stream = rows[0][0]
    with database.transaction() as db:
        removed = db.execute(
            "DELETE FROM log_events WHERE stream = ? AND sequence IN"
            " (SELECT sequence FROM log_events WHERE stream = ? ORDER BY sequence LIMIT ?)",
            (stream, stream, limit),
        ).rowcount
        if removed < limit:
            db.execute("DELETE FROM log_streams WHERE id = ?", (stream,))
    return True
