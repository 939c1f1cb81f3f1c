"""``python -m windtunnel_local.cluster.fleet FOLDER``: ends when the cluster is deleted, or where one runs already."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from windtunnel_local.cluster.fleet.process import Fleet
from windtunnel_local.cluster.fleet.steps import Steps
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.log_format import log_to
from windtunnel_local.settings import from_environment

_OWNER_ONLY = 0o077


def main(folder: Path) -> int:
    """Returns the exit code. Blocks as long as the cluster is there."""
    log_to(logging.StreamHandler(sys.stderr))
    settings = from_environment(os.environ)
    os.umask(_OWNER_ONLY)
    layout = Layout(folder)
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0

    def has_own_folder() -> bool:
        """Whether the folder is still the same one: it may have been removed, and a cluster of that name made anew."""
        try:
            return os.path.samestat(os.fstat(descriptor), layout.lock.stat())
        except FileNotFoundError:
            return False

    fleet = Fleet(layout, Steps(layout, settings, has_own_folder))

    def leave(_number: int, _frame: FrameType | None) -> None:
        fleet.leave()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    fleet.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
