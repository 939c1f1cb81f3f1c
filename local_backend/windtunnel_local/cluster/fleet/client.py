"""How commands start a cluster's background process and send it orders."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from windtunnel_local.cluster.errors import ClusterError, Conflict
from windtunnel_local.cluster.fleet.listening import answers, ask
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.operations import Fleet
from windtunnel_local.settings import Settings

_START_S = 60.0
_POLL_S = 0.05


class Processes(Fleet):
    """`Fleet` with real processes, which use the engine of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check(self) -> None:
        # Imported here, because most commands only read files or ask the process: Docker's client would be a third
        # of their time.
        from windtunnel_local.cluster.image import cluster_image_status

        cluster_image_status(self._settings)

    def start(self, folder: Path) -> None:
        """Idempotent, also between processes. Blocks until the process takes orders: half a second."""
        layout = Layout(folder)
        deadline = time.monotonic() + _START_S
        process: subprocess.Popen[bytes] | None = None
        while not answers(layout.socket):
            if process is None:
                process = _spawn(layout)
            elif not folder.exists():  # it has finished deleting the cluster
                return
            elif process.poll() or time.monotonic() > deadline:  # 0: another one runs
                tail = "\n".join(layout.log.read_text(errors="replace").splitlines()[-20:])
                raise ClusterError(
                    f"The background process of cluster {folder.name} did not start. Its log:\n{tail}"
                )
            time.sleep(_POLL_S)

    def call(self, folder: Path, order: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = ask(Layout(folder).socket, order)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"The background process of cluster {folder.name} does not answer ({error}); see {Layout(folder).log}."
            ) from error
        if "error" in answer:
            raise (Conflict if answer.get("kind") == Conflict.__name__ else ClusterError)(answer["error"])
        return answer


def _spawn(layout: Layout) -> subprocess.Popen[bytes]:
    with layout.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "windtunnel_local.cluster.fleet", str(layout.folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
