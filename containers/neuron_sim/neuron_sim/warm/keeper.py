"""The main program of a container that is kept: one job after the other, each as its child.

    windtunnel-keeper FOLDER

A job's process has the streams, folder and signals that it would have as the container's main
program. When it has ended, the keeper kills the processes that it left, closes its output by
a mark on both streams, and writes a record of how it ended. An idle keeper ends when it is
told to, or when the time in ``until.json`` has passed: so it ends even without a backend.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from datetime import datetime, timezone
from pathlib import Path

from neuron_sim import cgroup
from neuron_sim.warm import fork_client, leftovers, orders, servers, wire
from neuron_sim.warm.snapshot import Snapshot

_LOOK_S = 1.0
"""How often the folder is looked at without a signal from the backend."""
_LATE_S = 5.0
"""How long the backend may be late to end this container before it ends itself."""
_KILLED = 128 + signal.SIGKILL
_CANNOT_START = 127
_IMPORTS_S = 10.0
"""How long the servers may import when the first job is over already."""
_MOST_PROBLEMS = 20


def main() -> int:
    """Carry out the orders of the folder that the command line names. Blocks as long as the container lives."""
    leftovers.close_to_debuggers(True)  # before the key is read
    return Keeper(orders.Folder(Path(sys.argv[1]))).run()


def end_mark(mark: str, stream: int) -> str:
    """The text that closes a job's output on stdout (1) or stderr (2); ``mark``: that of its order."""
    return f"\x1ewindtunnel:end:{mark}:{stream}\x1e"


class Keeper:
    """Takes orders from one folder, and runs them one after the other."""

    def __init__(self, folder: orders.Folder) -> None:
        """Nothing runs yet."""
        self._folder = folder
        self._token = uuid.uuid4().hex
        self._servers: subprocess.Popen[bytes] | None = None
        self._told: int | None = None
        """The pipe on which the servers send their process ids; closed once they have imported all."""
        self._spared: set[tuple[int, int]] = set()
        """The servers' processes: id and start time of each."""
        self._done: set[str] = set()
        """Orders that were carried out. Kept here, since jobs can remove the records."""
        self._terminations = 0
        self._problems: list[str] | None = None
        """What the last job has left that cannot be undone; None: not known yet."""
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> int:
        """Take orders until SIGTERM comes while idle, or until the time has passed. Returns the exit code."""
        signal.signal(signal.SIGTERM, self._terminate)
        # The backend sends SIGURG for a new file: a process that has no handler yet ignores it.
        for number in (signal.SIGURG, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        self._snapshot = Snapshot()
        self._start_servers()
        while True:
            order = self._folder.order()
            if order is not None and order.id not in self._done:
                self._carry_out(order)
                continue
            request = self._folder.clean()
            if request is not None:
                problems = self._clean_up() if self._problems is None else self._problems
                self._folder.write(orders.CLEANED, id=request, problems=problems)
            elif self._terminations:
                return 128 + signal.SIGTERM
            elif self._overdue():
                return 0
            self._sleep([])

    def _carry_out(self, order: orders.Order) -> None:
        """Run an order to its end, and record it."""
        kills, self._problems = cgroup.oom_kills() or 0, None
        self._done.add(order.id)
        if self._folder.has(orders.KILL, order.id):
            code = _KILLED
        else:
            self._snapshot.complete()
            self._folder.write(orders.STARTED, id=order.id, at=_now())
            code = self._run_process(order)
        self._terminations = 0
        leftovers.end_processes(self._staying())
        for stream in (1, 2):
            # Twice: the first mark may follow an unfinished line, of any length.
            os.write(stream, f"{end_mark(self._folder.mark(order.id), stream)}\n".encode() * 2)
        self._folder.write(
            orders.ENDED,
            id=order.id,
            exit_code=code,
            oom_killed=code != 0 and (cgroup.oom_kills() or 0) > kills,
            at=_now(),
        )
        # Done before it is asked for: by then the next job would be waiting.
        self._problems = self._clean_up()

    def _run_process(self, order: orders.Order) -> int:
        environment = {**os.environ, **order.environment, wire.VARIABLE: self._token}
        process = self._start(list(order.command), environment)
        if process is None:
            return _CANNOT_START
        delivered = 0
        while True:
            if self._folder.has(orders.KILL, order.id):
                process.send(signal.SIGKILL)
                leftovers.end_processes(self._staying())
            if self._terminations > delivered:
                delivered = self._terminations
                process.send(signal.SIGTERM)
            status = process.poll()
            if status is not None:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            self._sleep(process.readable)

    def _start(
        self, command: list[str], environment: dict[str, str]
    ) -> _ChildProcess | _ForkedProcess | None:
        if command[0] == servers.TRAIN:
            # What a new process would have as its argv[0].
            path = shutil.which(command[0], path=environment.get("PATH", "")) or command[0]
            forked = fork_client.start(self._token, servers.TRAIN, [path, *command[1:]], environment)
            if forked is not None:
                return _ForkedProcess(forked)
        try:
            return _ChildProcess(subprocess.Popen(command, env=environment, restore_signals=True))
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            return None

    def _start_servers(self) -> None:
        """Start the servers. They import while the first job begins, which waits for imports that it needs itself."""
        listeners = [wire.listen(self._token, name) for name in (servers.TRAIN, servers.TORCHRUN)]
        self._told, tell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        passed = [*(listener.fileno() for listener in listeners), tell]
        code = "from neuron_sim.warm.servers import main; main()"
        with contextlib.suppress(OSError):
            self._servers = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, passed)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=passed,
            )
            self._spared.add((self._servers.pid, leftovers.started(self._servers.pid)))
        # Closed here, or a request to a server that has ended would wait for ever.
        for listener in listeners:
            listener.close()
        os.close(tell)

    def _staying(self) -> set[int]:
        """The ids of the servers' processes, without one that a job has ended and whose id another process has got."""
        self._hear()
        return {number for number, started in self._spared if leftovers.started(number) == started}

    def _hear(self) -> None:
        """Read what the servers have sent."""
        if self._told is None:
            return
        with contextlib.suppress(BlockingIOError, ValueError):
            said = os.read(self._told, 64)
            if said:
                number, started = said.split()
                self._spared.add((int(number), int(started)))
            else:
                os.close(self._told)
                self._told = None

    def await_servers(self) -> None:
        """Wait, for a limited time, until the servers have imported all: files that they write are not a job's."""
        deadline = time.monotonic() + _IMPORTS_S
        while self._told is not None and (left := deadline - time.monotonic()) > 0:
            if select.select([self._told], [], [], left)[0]:
                self._hear()

    def _clean_up(self) -> list[str]:
        """Remove what the job has added; returns what cannot be undone."""
        self.await_servers()
        problems = [] if leftovers.end_processes(self._staying()) else ["processes that do not end"]
        problems += leftovers.remove(self._snapshot.added())
        problems += self._snapshot.damage()
        return problems[:_MOST_PROBLEMS]

    def _overdue(self) -> bool:
        until = self._folder.until()
        return until is not None and time.time() > until + _LATE_S

    def _terminate(self, *_: object) -> None:
        self._terminations += 1

    def _sleep(self, readable: list[socket.socket]) -> None:
        """Sleep until a signal comes, a socket can be read, or it is time to look at the folder again."""
        waited: list[int | socket.socket] = [self._wake, *readable]
        ready, _, _ = select.select(waited, [], [], _LOOK_S)
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if self._servers is not None:
            self._servers.poll()


class _ChildProcess:
    """A job's process that is this one's child."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.readable: list[socket.socket] = []
        self._process = process
        leftovers.prefer_for_oom(process.pid)

    def poll(self) -> int | None:
        """Its status, as of `os.waitpid`, once it has ended; else None."""
        code = self._process.poll()
        if code is None:
            return None
        return -code if code < 0 else code << 8

    def send(self, number: int) -> None:
        """Send it a signal; if it has ended, nothing happens."""
        self._process.send_signal(number)


class _ForkedProcess:
    """A job's process that a server has forked."""

    def __init__(self, forked: fork_client.Forked) -> None:
        self.readable = [forked.connection]
        self._forked = forked

    def poll(self) -> int | None:
        ready, _, _ = select.select(self.readable, [], [], 0)
        return self._forked.status() if ready else None

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._forked.pid, number)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()


if __name__ == "__main__":
    sys.exit(main())
