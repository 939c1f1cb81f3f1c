"""Runs a command through a fork server, if there is one: this process then waits for the forked one.

Who started the command sees no difference: the forked process has this one's streams and gets
its signals, and this process ends as the forked one ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from types import FrameType

from neuron_sim.warm import wire

_FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_PATIENCE_S = 60.0
"""How long to wait for a server that is still importing."""


def run(program: str, arguments: list[str]) -> int | None:
    """Have a server run ``program``, and wait for its end. Blocks.

    Returns the exit code; None if no server did so, and nothing has happened. When a
    signal ended the process, the same signal ends this one.
    """
    token = os.environ.get(wire.VARIABLE)
    forked = start(token, program, arguments, dict(os.environ)) if token else None
    if forked is None:
        return None
    status = _await_end(forked)
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    sys.stdout.flush()
    os.kill(os.getpid(), number)
    return 128 + number


class Forked:
    """A process that a server has forked for this one."""

    def __init__(self, pid: int, connection: socket.socket, answers: wire.Answers) -> None:
        self.pid = pid
        self.connection = connection
        """Readable once the process has ended, or the server is gone."""
        self._answers = answers

    def status(self) -> int:
        """The status, as of `os.waitpid`. Blocks until the end. If the server is gone, the process is killed."""
        answer = self._answers.next()
        self.connection.close()
        if answer is None or not isinstance(answer.get("status"), int):
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            return int(signal.SIGKILL)
        return int(answer["status"])


def start(token: str, program: str, arguments: list[str], environment: dict[str, str]) -> Forked | None:
    """Have ``program`` forked with this process's streams; None when no server does it.

    Blocks while the server is still importing, which the program would have to do as well.
    """
    try:
        connection = wire.connect(token, program)
    except OSError:
        return None
    connection.settimeout(_PATIENCE_S)
    answers = wire.Answers(connection)
    try:
        wire.send_request(connection, arguments, environment)
        answer = answers.next()
    except (OSError, ValueError):
        answer = None
    if answer is None or not isinstance(answer.get("pid"), int):
        connection.close()
        return None
    connection.settimeout(None)
    return Forked(answer["pid"], connection, answers)


def _await_end(forked: Forked) -> int:
    def forward(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(forked.pid, number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    return forked.status()
