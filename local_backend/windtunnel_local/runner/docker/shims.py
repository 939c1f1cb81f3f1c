"""A container's shim: the process beside it that holds its pipes, and that outlives the engine.

An engine that is killed while it starts a container has forgotten that when it comes back: it says
"created", and removes the container without a look at its processes. They run on, beside those of
the job's next container and in the same folders. So who removes a container that "never started"
ends its shim, too.

Only where the engine is on this machine and we are root; elsewhere no shim is found.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_PATIENCE_S = 5.0


def find(container_id: str) -> Path | None:
    """The shim's folder in /proc, in any namespace; None: there is no shim, or we cannot see it."""
    wanted = container_id.encode()
    # `containerd-shim ... -id <id> delete` is no shim, but what cleans up after one.
    briefly = {b"start", b"delete"}
    for process in _PROCESSES.iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                arguments = (process / "cmdline").read_bytes().split(b"\0")
                if b"containerd-shim" in arguments[0] and wanted in arguments and not briefly & {*arguments}:
                    return process
    return None


def end(container_id: str) -> None:
    """Send SIGKILL to a forgotten shim and to what it runs. Blocks until they are gone, 5 s at most."""
    shim = find(container_id)
    if shim is None:
        return
    # The shim first, so that it starts nothing more. Its children are the first processes of their
    # namespaces: the kernel ends all others there with them.
    ending = [shim, *_children(shim)]
    for process in ending:
        with suppress(OSError):
            os.kill(int(process.name), signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE_S
    while any(map(_lives, ending)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _children(process: Path) -> list[Path]:
    found: list[Path] = []
    with suppress(OSError):
        for task in (process / "task").iterdir():
            found += [_PROCESSES / number for number in (task / "children").read_text().split()]
    return found


def _lives(process: Path) -> bool:
    with suppress(OSError):
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
