"""The parent of one `process` job: outlives the server, and writes down how the job ended.

Run as a script of its own (standard library only, nothing of ours is imported), with its
orders as JSON on stdin: ``folder``, ``command``, ``environment``, ``banner``. In ``folder``:

    lock         held for as long as this process lives: whoever can take it knows that it is gone
    output.log   what the job prints
    run.json     {"pid", "started"}: written once the job runs; its presence forbids a second run
    exit.json    {"exit_code", "finished"}: written last, durably

SIGTERM is handed on to the job.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

TOKEN_VARIABLE = "WINDTUNNEL_PROCESS"  # noqa: S105 - a name
"""In the environment of every process of the job, and of no other."""

COMMAND_NOT_FOUND = 127


def main() -> None:
    """Detach, run the job, record its end."""
    orders = json.load(sys.stdin)
    folder = Path(orders["folder"])
    if os.fork():  # the server need not wait for, nor reap, what goes on here
        return
    os.setsid()
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another one is at it
    if not (folder / "run.json").exists():
        _write(folder / "exit.json", {"exit_code": _run(folder, orders), "finished": time.time()})


def _run(folder: Path, orders: dict[str, Any]) -> int:
    """Run the command to its end; its exit code as a shell would say it (137: killed)."""
    with (folder / "output.log").open("ab", buffering=0) as output:
        output.write(orders["banner"].encode() + b"\n")
        try:
            job = subprocess.Popen(
                orders["command"],
                env=orders["environment"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o022,  # a container's; the server's own hides what it writes
            )
        except OSError as error:
            output.write(f"{orders['command'][0]}: {error.strerror}\n".encode())
            _write(folder / "run.json", {"pid": os.getpid(), "started": time.time()})
            return COMMAND_NOT_FOUND

        def hand_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's signature
            job.send_signal(number)

        signal.signal(signal.SIGTERM, hand_on)
        _write(folder / "run.json", {"pid": os.getpid(), "started": time.time()})
        code = job.wait()
        # As in a container: when its first process ends, all that it left behind ends with it.
        kill_all(orders["environment"][TOKEN_VARIABLE])
        return code if code >= 0 else 128 - code


def kill_all(token: str) -> None:
    """SIGKILL for every process that carries ``token``, until none is left. Linux."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if _carries(entry, mark)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        time.sleep(0.01)


def _carries(entry: Path, mark: bytes) -> bool:
    try:
        return entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(
            b"\0"
        )  # empty: a zombie
    except OSError:
        return False


def _write(path: Path, content: dict[str, Any]) -> None:
    """Whole or not at all, also across a power failure."""
    draft = path.with_suffix(".tmp")
    with draft.open("w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


if __name__ == "__main__":
    main()
