"""The parent of one job without a container: outlives the server, and writes down how the job ended.

Run as a script of its own (standard library only, nothing of ours is imported), in the host's folder. Its orders are
JSON: ``command``, ``environment``, ``banner``, and ``shared`` where the folder is seen by other machines.

    supervise.py        orders on stdin; it detaches itself, and is the only one of its folder
    supervise.py FILE   orders in a file; it stays in the foreground, and whoever starts it sees to it that it is one

It stays in the folder that it was started in: when that is removed, and a new one made in its place for the next
attempt, it sees that its own is gone, ends its job and writes nothing more. In the folder:

    lock         held for as long as a detached one lives: whoever can take it knows that it is gone
    output.log   what the job prints
    run.json     {"pid", "started"}: written once the job runs; its presence forbids a second run
    terminate    made by the server: SIGTERM for the job
    kill         made by the server: SIGKILL for all its processes
    exit.json    {"exit_code", "finished", "told"}: written last, durably. ``told``: this process got SIGTERM,
                 which it hands on to the job
"""

from __future__ import annotations

import contextlib
import errno
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
"""Variable that marks the processes of a job: no other process has it."""

COMMAND_NOT_FOUND = 127
_LOOK_S = 0.2
_GONE = (errno.ENOENT, errno.ESTALE)
"""Errors about the current folder after its removal: on a local disk, or on a file server."""


def main() -> None:
    """Run the job, record its end; detached unless the orders are in a file."""
    if sys.argv[1:]:
        _supervise(json.loads(Path(sys.argv[1]).read_text()))
        return
    orders = json.load(sys.stdin)
    if os.fork():  # the server need not wait for, nor reap, what goes on here
        return
    os.setsid()
    descriptor = os.open("lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another one is at it
    _supervise(orders)


def _supervise(orders: dict[str, Any]) -> None:
    if not Path("run.json").exists():
        code, told = _run(orders)
        _write("exit.json", {"exit_code": code, "finished": time.time(), "told": told})


def _run(orders: dict[str, Any]) -> tuple[int, bool]:
    """Run the command to its end; its exit code as a shell would say it (137: killed), and ``told``."""
    told = False
    with Path("output.log").open("ab", buffering=0) as output:
        output.write(orders["banner"].encode() + b"\n")
        try:
            job = subprocess.Popen(
                orders["command"],
                env=orders["environment"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o022,  # a container's; the server's own hides what it writes
            )
        except OSError as error:
            output.write(f"{orders['command'][0]}: {error.strerror}\n".encode())
            _write("run.json", {"pid": os.getpid(), "started": time.time()})
            return COMMAND_NOT_FOUND, told

        def hand_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - signal's signature
            nonlocal told
            told = True
            job.send_signal(number)

        signal.signal(signal.SIGTERM, hand_on)
        _write("run.json", {"pid": os.getpid(), "started": time.time()})
        token = orders["environment"][TOKEN_VARIABLE]
        code = _await_end(job, token, output.fileno() if orders.get("shared") else None)
        # As in a container: when its first process ends, all that it left behind ends with it.
        kill_all(token, job.pid)
        if orders.get("shared"):
            os.fsync(output.fileno())
        return code if code >= 0 else 128 - code, told


def _await_end(job: subprocess.Popen[bytes], token: str, output: int | None) -> int:
    """Do what the server asks for until the job has ended; its return code.

    ``output``: the file of its output, if that is to be seen by other machines while the job runs.
    """
    asked: set[str] = set()
    written = 0
    while True:
        try:
            return job.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if output is not None and (size := os.fstat(output).st_size) != written:
                os.fsync(output)
                written = size
            found = _there()
            if "kill" in found:
                kill_all(token)
            elif "terminate" in found - asked:
                job.terminate()
            asked = found


def _there() -> set[str]:
    """The names in the folder. If it is gone, it looks empty or cannot be read: then ``kill`` alone."""
    try:
        # A list, as a network's file system may answer for a single name from its memory.
        found = set(os.listdir())  # noqa: PTH208 - names
    except OSError as error:
        if error.errno not in _GONE:
            raise
        found = set()
    return found if "run.json" in found else {"kill"}


def kill_all(token: str, session: int | None = None) -> None:
    """SIGKILL for every process that carries ``token``, or is of the session, until none is left. Linux.

    A process that begins another program, or ends, carries nothing for a moment; its session it has to its end.
    """
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if _is_left(entry, mark, session)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            return
        time.sleep(0.01)


def _is_left(entry: Path, mark: bytes, session: int | None) -> bool:
    if not entry.name.isdigit():
        return False
    try:
        if session is not None:
            state, _, _, own = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                return True
        return mark in (entry / "environ").read_bytes().split(b"\0")  # empty: a zombie
    except OSError:
        return False


def _write(name: str, content: dict[str, Any]) -> None:
    """Write a file whole or not at all, also across a power failure. If the folder is gone, nothing is written."""
    draft = Path(name).with_suffix(".tmp")
    try:
        with draft.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(name)
    except OSError as error:
        if error.errno not in _GONE:
            raise


if __name__ == "__main__":
    main()
