"""`Store` on SQLite: all tables of one file."""

from __future__ import annotations

from pathlib import Path

from windtunnel_local.store.database import Database
from windtunnel_local.store.jobs import JobRecords
from windtunnel_local.store.logs import LogRecords
from windtunnel_local.store.metrics import MetricRecords
from windtunnel_local.store.searching import add_functions
from windtunnel_local.store.upkeep import Upkeep


class SqliteStore(JobRecords, LogRecords, MetricRecords):
    """Jobs, tags, logs and metrics in one file; see `service.ground.ports.Store`. Safe from several threads."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it if it is not there.

        Raises:
            WindtunnelError: it is no file of ours, damaged, or of a newer version; it is as it was.
        """
        super().__init__(Database(path, add_functions))
        self._upkeep = Upkeep(self._db)

    def close(self) -> None:
        """Close the file; calls after this raise. Idempotent."""
        self._upkeep.close()
        self._db.close()
