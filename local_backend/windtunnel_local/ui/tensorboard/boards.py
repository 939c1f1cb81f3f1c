"""The running TensorBoards: at most `MOST`, each for one job. They end with the server."""

from __future__ import annotations

import json
import logging
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from windtunnel_local.service.service import Service
from windtunnel_local.ui.tensorboard import process
from windtunnel_local.ui.tensorboard.event_files import fill

_log = logging.getLogger(__name__)

MOST = 3
IDLE_S = 1800.0
_REFRESH_S = 5.0
_IDLE_SHARE = 10
"""After a refresh, the next one waits this many times longer than it took."""
_PROBLEM_BYTES = 4000


def installed() -> bool:
    """Whether TensorBoard is installed where the server runs. Does not import it."""
    found = find_spec("tensorboard")
    return found is not None and found.origin is not None  # None: only a folder of that name


class Board:
    """One TensorBoard. A thread fills its folder with event files, starts it, and updates the folder. Thread-safe."""

    def __init__(self, backend: Service, description: Mapping[str, Any]) -> None:
        self.settled = threading.Event()
        """Set when TensorBoard answers, or has failed."""
        self.url = ""
        """Its secret URL, which only readers of the page know; empty until TensorBoard answers."""
        self.problem = ""
        self.full = False
        """Whether event files were left out for lack of space."""
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._arguments = backend, description
        self._thread = threading.Thread(target=self._run, name="tensorboard", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether TensorBoard runs, or is being started."""
        started = self._process
        return self._thread.is_alive() and (started is None or started.poll() is None)

    def stop(self) -> None:
        """End TensorBoard. Does not block. Idempotent."""
        self._stopped.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def _run(self) -> None:
        try:
            with tempfile.TemporaryDirectory(
                prefix="windtunnel-tensorboard-", ignore_cleanup_errors=True
            ) as folder:
                self._serve(Path(folder))
        except Exception as error:  # noqa: BLE001  the page shows it
            self.problem = str(error) or type(error).__name__
            if not self._stopped.is_set():  # expected at the server's end, when the store closes
                _log.exception("a TensorBoard has failed")
        finally:
            self.settled.set()

    def _serve(self, folder: Path) -> None:
        backend, description = self._arguments
        events, log = folder / "events", folder / "log"
        events.mkdir()
        ended, self.full = fill(events, backend, description)
        # A path that nobody can guess. Not passed as an argument, because all users of this machine can see those.
        prefix = f"/{secrets.token_urlsafe(24)}"
        orders = {
            "path": sys.path,
            "folder": str(folder),
            "logdir": str(events),
            "prefix": prefix,
            "title": description["TrainingJobName"],
            "idle_s": IDLE_S,
        }
        with log.open("wb") as stderr, self._start(stderr) as board:
            stdin, stdout = board.stdin, board.stdout
            if stdin is None or stdout is None:
                raise TypeError("the process was started without pipes")
            with suppress(BrokenPipeError):  # it has ended already: its log says why
                stdin.write(json.dumps(orders).encode() + b"\n")
                stdin.flush()
            port = stdout.readline().strip()
            if not port.isdigit():
                self.problem = _tail(log) or "It has ended without a word."
                return
            self.url = f"http://127.0.0.1:{port.decode()}{prefix}/"
            self.settled.set()
            pause = _REFRESH_S
            while not self._stopped.wait(pause) and board.poll() is None:
                if not ended:
                    begun = time.monotonic()
                    ended, self.full = fill(events, backend, description)
                    pause = max(_REFRESH_S, _IDLE_SHARE * (time.monotonic() - begun))

    def _start(self, stderr: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped.is_set():
                raise InterruptedError("It was closed before it had started.")
            self._process = subprocess.Popen(
                [sys.executable, "-I", process.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
            return self._process


def _tail(log: Path) -> str:
    return log.read_bytes()[-_PROBLEM_BYTES:].decode("utf-8", "replace").strip()


class Boards:
    """All running TensorBoards, by job. Thread-safe."""

    def __init__(self, backend: Service) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._boards: dict[tuple[str, datetime], Board] = {}

    def open(self, description: Mapping[str, Any]) -> Board:
        """The job's TensorBoard, started if it does not run. If there would be more than `MOST`, the oldest ends."""
        with self._lock:
            self._boards = {job: board for job, board in self._boards.items() if board.alive}
            board = self._boards.get(_key(description))
            if board is None:
                for job in list(self._boards)[: len(self._boards) - MOST + 1]:
                    self._boards.pop(job).stop()
                board = self._boards[_key(description)] = Board(self._backend, description)
            return board

    def of(self, description: Mapping[str, Any]) -> Board | None:
        """The job's TensorBoard, if it runs or has failed; else None."""
        with self._lock:
            board = self._boards.get(_key(description))
            return board if board is not None and (board.alive or board.problem) else None

    def close(self, description: Mapping[str, Any]) -> None:
        """End the job's TensorBoard. Idempotent."""
        with self._lock:
            board = self._boards.pop(_key(description), None)
        if board is not None:
            board.stop()

    def busy(self) -> bool:
        """Whether any TensorBoard runs."""
        return any(board.alive for board in list(self._boards.values()))

    def end(self) -> None:
        """End all TensorBoards. Does not block. Idempotent."""
        with self._lock:
            for board in self._boards.values():
                board.stop()


def _key(description: Mapping[str, Any]) -> tuple[str, datetime]:
    return description["TrainingJobName"], description["CreationTime"]
