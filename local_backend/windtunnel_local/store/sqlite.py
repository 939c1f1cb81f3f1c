"""The port `Store` on SQLite: all tables of one file."""

from __future__ import annotations

from pathlib import Path

from windtunnel_local.service.ground.ports import Store
from windtunnel_local.store.database import Database
from windtunnel_local.store.endpoint_metrics import EndpointMetricTable
from windtunnel_local.store.invocations import InvocationTable
from windtunnel_local.store.jobs import JobTable
from windtunnel_local.store.logs import LogTable
from windtunnel_local.store.metrics import MetricTable
from windtunnel_local.store.resources import ResourceTable
from windtunnel_local.store.searching import add_functions
from windtunnel_local.store.upkeep import Upkeep


class Tables(JobTable, ResourceTable, InvocationTable, LogTable, MetricTable, EndpointMetricTable, Store):
    """All tables of an open file. Thread-safe."""


class SqliteStore(Tables):
    """The server's `Store`: a file, its tables, and a thread that tidies it up (`Upkeep`). Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Open the file; create it if it is missing.

        Raises:
            WindtunnelError: the file is another program's, damaged, or of another schema version. It is not changed.
        """
        super().__init__(Database(path, add_functions))
        self._upkeep = Upkeep(self.database)

    def close(self) -> None:
        """Close the file; calls after this raise. Idempotent."""
        self._upkeep.close()
        self.database.close()
