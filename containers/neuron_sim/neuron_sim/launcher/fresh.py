"""Resets what a forked process inherits from its parent and a new process would not have."""

from __future__ import annotations

import random
import signal
import sys


def begin() -> None:
    """Reset signal handlers and random seeds as at an interpreter's start."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(None)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
