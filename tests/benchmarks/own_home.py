"""The end of a benchmark's own home."""

from __future__ import annotations

import os
import signal
import time

from windtunnel import LocalSession


def leave(session: LocalSession) -> None:
    """End the home's server, so that its folder can be removed."""
    running = session.backend.running()
    if running is not None:
        os.kill(running.pid, signal.SIGTERM)
        while session.backend.running() is not None:
            time.sleep(0.1)
