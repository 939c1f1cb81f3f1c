"""Where the `windtunnel` command begins: ready for Ctrl-C before the commands, which take a while, are imported."""

from __future__ import annotations

import os
import signal
import sys

from windtunnel.cli.exit_codes import EXIT_DETACHED

TYPE_CHECKING = False  # as in windtunnel itself: typing is not imported yet
if TYPE_CHECKING:
    from typing import NoReturn


_SAID = "\nwindtunnel: interrupted\n"


def main() -> int:
    """Run the command line; returns the exit code."""
    # Who started the command may have it ignore Ctrl-C, as nohup does.
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
    """At once: an exception in the midst of an import may be passed over there, or be printed."""
    os.write(2, _SAID.encode())
    os._exit(EXIT_DETACHED)
