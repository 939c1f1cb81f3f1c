"""A server that has imported what a program needs, and forks a process for each request.

It is single-threaded, and never runs a program itself: `serve` returns only in the child.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import sys
import types
from dataclasses import dataclass

from neuron_sim.launcher import fresh
from neuron_sim.warm import leftovers, wire
from neuron_sim.warm.likeness import Likeness


@dataclass
class _Child:
    """A forked process, and the connection of the client that waits for its end."""

    pid: int
    connection: socket.socket


class ForkServer:
    """Answers requests on one socket until the process ends."""

    def __init__(self, listener: socket.socket, likeness: Likeness) -> None:
        """Call when all imports are done, and noted in ``likeness``."""
        self._listener = listener
        self._likeness = likeness
        self._children: dict[int, _Child] = {}
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> None:
        """Fork for every request that is not refused. Returns in the forked process, which then runs the program."""
        leftovers.close_to_debuggers(True)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        while True:
            connections = {child.connection.fileno(): child for child in self._children.values()}
            waited: list[int | socket.socket] = [self._listener, self._wake, *connections]
            ready, _, _ = select.select(waited, [], [])
            for descriptor in ready:
                if isinstance(descriptor, int) and descriptor in connections:
                    self._heard(connections[descriptor])
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            self._reap()
            if self._listener in ready and self._answer():
                return

    def _answer(self) -> bool:
        """Take one request, and fork unless it is refused. Returns True in the child."""
        connection, _ = self._listener.accept()
        connection.settimeout(5.0)
        try:
            request = wire.receive_request(connection)
        except (OSError, ValueError, KeyError, TypeError):
            connection.close()
            return False
        try:
            refusal = self._likeness.difference(request.environment)
            if refusal is not None:
                wire.say(connection, refused=refusal)
                connection.close()
                return False
            pid = os.fork()
            if pid == 0:
                connection.close()
                self._become(request)
                return True
            self._children[pid] = _Child(pid, connection)
            wire.say(connection, pid=pid)
        finally:
            for descriptor in request.streams:
                if descriptor > 2:
                    os.close(descriptor)
        return False

    def _become(self, request: wire.Request) -> None:
        """In the child: close what belongs to the server, and take over what the request contains."""
        signal.set_wakeup_fd(-1)
        fresh.begin()
        for child in self._children.values():
            child.connection.close()
        self._children.clear()
        self._listener.close()
        os.close(self._wake)
        os.close(self._woken)
        for target, descriptor in enumerate(request.streams):
            os.dup2(descriptor, target)
        os.umask(request.umask)
        for name, (soft, hard) in request.limits.items():
            with contextlib.suppress(OSError, ValueError):  # a hard limit that only root may raise
                resource.setrlimit(getattr(resource, name), (soft, hard))
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, request.processors)
        os.chdir(request.folder)
        self._likeness.apply(request.arguments, request.environment)
        leftovers.close_to_debuggers(False)
        leftovers.prefer_for_oom("self")
        main = types.ModuleType("__main__")
        main.__file__ = request.arguments[0]
        sys.modules["__main__"] = main

    def _heard(self, child: _Child) -> None:
        """End the child of a client that is gone: a client sends nothing after its request but the end."""
        with contextlib.suppress(OSError):  # a reset, if the client has not read all answers
            child.connection.recv(1)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        self._children.pop(child.pid, None)
        child.connection.close()

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                wire.say(child.connection, status=status)
                child.connection.close()
