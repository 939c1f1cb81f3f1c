"""The local backend as a process: find the running one, or start it and wait until it answers.

The SDK never imports the backend. It runs ``python -m windtunnel_local serve`` detached. The server leaves two files
in the home directory: ``backend.json`` says where it listens, ``credentials.json`` holds the key pair.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windtunnel import settings
from windtunnel._version import __version__
from windtunnel.atomic_file import locked
from windtunnel.errors import BackendError
from windtunnel.session.training_service import LOCAL_ACCOUNT

DEFAULT_REGION = "us-east-1"
START_TIMEOUT_S = 60.0

_HEALTH_TIMEOUT_S = 2.0
_POLL_S = 0.02
_STOP_TIMEOUT_S = 30.0
_LOG_TAIL_LINES = 20
_LEAST_FREE_BYTES = 64 << 10
"""A server with less free disk may end without a log line, because the line has no room."""
_KEEP_FILE = "keep"


@dataclass(frozen=True)
class Credentials:
    """The key pair of the local backend and the account and region it plays."""

    access_key_id: str
    secret_access_key: str
    account_id: str
    region: str

    def __repr__(self) -> str:
        """All fields but the secret key."""
        return f"Credentials({self.access_key_id!r}, account_id={self.account_id!r}, region={self.region!r})"


@dataclass(frozen=True)
class RunningBackend:
    """A backend that answers. ``runner``: docker, process or slurm; ``interpreter``: path of its Python."""

    endpoint: str
    pid: int
    version: str
    runner: str
    interpreter: str | None = None

    @property
    def outdated(self) -> bool:
        """Whether its version differs from this SDK's, or its installation is gone (a removed venv).

        Without its installation it still answers, but fails as soon as it needs one of its own files.
        """
        removed = self.interpreter is not None and not Path(self.interpreter).exists()
        return removed or self.version != __version__


class Backend:
    """The backend of one home directory.

    Args:
        home: its state directory; created when it is missing.
        command: starts the server; the default is this interpreter with ``-m windtunnel_local serve``.
        start_timeout_s: how long to wait for a started server.
    """

    def __init__(
        self,
        home: Path,
        command: Sequence[str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        self.home = home
        self._command = list(command or (sys.executable, "-m", "windtunnel_local", "serve"))
        self._start_timeout_s = start_timeout_s

    @property
    def log_path(self) -> Path:
        """The server's own log."""
        return self.home / "backend.log"

    def running(self) -> RunningBackend | None:
        """The server that answers now, or None. Takes milliseconds."""
        found = self._recorded()
        if found is None or not _alive(found.pid) or not _healthy(found):
            return None
        return found

    def ensure(self) -> RunningBackend:
        """The running server; started if there is none. Idempotent, also between processes.

        An outdated server is replaced; its jobs go on, and the new server takes them over.

        Raises:
            BackendError: the server did not start or answer in time (the message ends with its log); or on Windows.
        """
        if reason := no_backend_here():
            raise BackendError(reason)
        running = self.running()
        if running is not None and not running.outdated:
            return running
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One process at a time starts a server. A server holds another lock of its own.
            with locked(self.home / "start.lock"):
                running = self.running()
                if running is not None and running.outdated:
                    self.stop()
                    running = None
                return running or self._start()
        except OSError as error:
            raise self._unusable(error) from error

    def stop(self) -> RunningBackend | None:
        """Stop the running server (SIGTERM), and wait until its process has ended; None when there is none.

        The server removes backend.json first, then detaches from jobs and ends warm pools. Running jobs go on
        in their containers; the next server takes them over.

        Raises:
            BackendError: the server has not ended within 30 s.
        """
        running = self.running()
        if running is None:
            return None
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        with suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGTERM)
        while _alive(running.pid):
            if time.monotonic() > deadline:
                raise BackendError(
                    f"The local backend (process {running.pid}) has not ended within {_STOP_TIMEOUT_S:g} s of "
                    f"SIGTERM. Its log: {self.log_path}"
                )
            time.sleep(_POLL_S)
        return running

    def keep(self) -> None:
        """Ask the server to stay when it is idle, until `release` or a reboot of the machine.

        Raises:
            BackendError: the home cannot be written to.
        """
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.home / _KEEP_FILE).write_text(f"{_boot()}\n")
        except OSError as error:
            raise self._unusable(error) from error

    def release(self) -> None:
        """Undo `keep`. Idempotent."""
        with suppress(OSError):
            (self.home / _KEEP_FILE).unlink()

    def credentials(self) -> Credentials:
        """The key pair that the server made at its first start.

        Raises:
            BackendError: there is no readable key pair; maybe the server has never run in this home.
        """
        path = self.home / "credentials.json"
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            return Credentials(
                stored["access_key_id"], stored["secret_access_key"], stored["account_id"], stored["region"]
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise BackendError(
                f"{path} cannot be read ({error}). The backend writes it at its first start: `windtunnel up`."
            ) from error

    def account_and_region(self) -> tuple[str, str]:
        """The account and region that the backend plays, also before its first start."""
        if not (self.home / "credentials.json").exists():
            return LOCAL_ACCOUNT, DEFAULT_REGION
        credentials = self.credentials()
        return credentials.account_id, credentials.region

    def _recorded(self) -> RunningBackend | None:
        try:
            stored = json.loads((self.home / "backend.json").read_text(encoding="utf-8"))
            return RunningBackend(
                str(stored["endpoint"]),
                int(stored["pid"]),
                str(stored["version"]),
                str(stored["runner"]),
                stored.get("interpreter"),
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _start(self) -> RunningBackend:
        began = time.monotonic()
        log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            try:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=settings.backend_environment(self.home),
                    cwd=self.home,
                    start_new_session=True,
                )
            except OSError as error:
                raise BackendError(f"The local backend cannot be started: {error}") from error
        while time.monotonic() - began < self._start_timeout_s:
            running = self.running()
            if running is not None:
                # The server outlives this call. The thread reaps its process whenever it ends.
                threading.Thread(target=process.wait, name="windtunnel-backend", daemon=True).start()
                return running
            # Exit code 0: another server holds the home and is about to answer.
            if process.poll() not in (None, 0):
                raise self._failed(f"ended with exit code {process.returncode}", log_start)
            time.sleep(_POLL_S)
        if process.poll() == 0 and (there := self._recorded()) is not None and _alive(there.pid):
            raise BackendError(
                f"The local backend (process {there.pid}) runs and did not answer within {self._start_timeout_s:g} s: "
                "this machine is too busy, or its memory is full.\n"
                "  Jobs go on by themselves, and nothing is lost. Try again once the machine has room: "
                "`windtunnel ps` lists them, `windtunnel logs -f NAME` follows one.\n"
                f"  Log: {self.log_path}"
            )
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise self._failed(f"did not answer within {self._start_timeout_s:g} s", log_start)

    def _unusable(self, error: OSError) -> BackendError:
        return BackendError(
            f"The local backend cannot keep its state in {self.home}: {error}. "
            "Set WINDTUNNEL_HOME to a directory of your own, on a disk that has room."
        )

    def _failed(self, what: str, log_start: int) -> BackendError:
        with self.log_path.open("rb") as log:
            log.seek(log_start)
            lines = log.read().decode("utf-8", "replace").splitlines()
        if not lines and shutil.disk_usage(self.home).free < _LEAST_FREE_BYTES:
            return self._unusable(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        tail = "\n".join(f"    {line}" for line in lines[-_LOG_TAIL_LINES:]) or "    (nothing)"
        return BackendError(
            f"The local backend {what}.\n"
            f"  Started with: {' '.join(self._command)}\n"
            f"  It printed:\n{tail}\n"
            f"  Log: {self.log_path}\n"
            "  Next: `windtunnel doctor` checks what it needs."
        )


def no_backend_here() -> str:
    """Why the local backend cannot run on this system; empty if it can."""
    if os.name != "nt":
        return ""
    return (
        "the local backend does not run on Windows: use Windtunnel inside WSL2 (Linux), where Docker runs. "
        "check, compare, plan, inference, prices, validate and jobs on AWS (AwsSession) need no backend and work here."
    )


def _boot() -> str:
    """The kernel's id of the machine's current boot; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        # An ended process keeps its number, as a zombie, until its parent reaps it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True  # no /proc here, or the process has just ended, which the next call sees


def _healthy(backend: RunningBackend) -> bool:
    """Whether exactly this process answers GET /health."""
    import http.client  # imports ssl and email, which takes as long as all of our imports

    scheme, _, address = backend.endpoint.partition("://")
    if scheme != "http":
        return False
    connection = http.client.HTTPConnection(address.rstrip("/"), timeout=_HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        response = connection.getresponse()
        stated = json.loads(response.read())
        return response.status == 200 and int(stated["pid"]) == backend.pid
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return False
    finally:
        connection.close()
