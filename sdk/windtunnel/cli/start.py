"""Entry point of the `windtunnel` command. Handles Ctrl-C before it imports the commands, which takes a while."""

from __future__ import annotations

import os
import signal
import sys

from windtunnel.cli.exit_codes import EXIT_DETACHED

TYPE_CHECKING = False  # as in windtunnel/__init__.py: without an import of typing
if TYPE_CHECKING:
    from typing import NoReturn


_SAID = "\nwindtunnel: interrupted\n"


def main() -> int:
    """Run the command line; returns the exit code."""
    # The caller may have set the command to ignore Ctrl-C, as a shell does for background jobs; then leave that.
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds:
        signal.signal(signal.SIGINT, _end)
    from windtunnel.cli.main import main as commands

    try:
        if heeds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return commands()
    except KeyboardInterrupt:
        sys.stderr.write(_SAID)
        return EXIT_DETACHED


def _end(*_: object) -> NoReturn:
    """Exit at once: an exception in the middle of an import might be swallowed, or printed as a traceback."""
    os.write(2, _SAID.encode())
    os._exit(EXIT_DETACHED)
