"""A container engine made of threads: each host runs a Python function of the test."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from windtunnel_local.service.ground.containers import (
    ContainerPlan,
    ContainerState,
    JobPlan,
    LogBatch,
    LogLine,
)
from windtunnel_local.service.ground.errors import ImageNotFound, RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.ports import Clock, Progress, Runner

_PATIENCE_S = 60.0


class Killed(Exception):
    """SIGKILL reached the script."""


class FakeContainer:
    """One host, as its script sees it."""

    def __init__(self, plan: ContainerPlan, clock: Clock) -> None:
        """Created, not started."""
        self.plan = plan
        self.state = ContainerState("created")
        self.identity = uuid.uuid4().hex
        """Of the container, whichever job runs in it."""
        self.lines: list[LogLine] = []
        self.terminated = threading.Event()
        self.killed = threading.Event()
        self.signals: list[str] = []
        self.address: tuple[str, int] | None = None
        """Where it answers, set by a script that serves."""
        self.asked: list[bytes] = []
        """What such a script was asked so far."""
        self.changed = threading.Condition()
        self._clock = clock

    def path(self, target: str) -> Path:
        """Where a path of the container is on this machine."""
        mounts = sorted(self.plan.mounts, key=lambda mount: len(mount.target), reverse=True)
        for mount in mounts:
            if target == mount.target or target.startswith(mount.target + "/"):
                return Path(mount.source) / Path(target).relative_to(mount.target)
        raise AssertionError(f"{target} is not mounted")

    def write(self, target: str, text: str) -> None:
        """Write a file of the container."""
        path = self.path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def print(self, text: str) -> None:
        """One line of output."""
        stamp = int(self._clock.now().timestamp() * 1000)
        with self.changed:
            self.lines.append(LogLine(stamp, text))
            self.changed.notify_all()

    def sleep_until(self, event: threading.Event) -> int:
        """Block until the event, or until SIGKILL; returns 0, so that it can be a whole script."""
        while not event.wait(0.005):
            if self.killed.is_set():
                raise Killed
        return 0

    def sleep(self, seconds: float) -> None:
        """Real seconds; SIGKILL ends them."""
        if self.killed.wait(seconds):
            raise Killed

    def wait_for_lines(self, beyond: int, most: int, timeout_s: float) -> tuple[tuple[LogLine, ...], bool]:
        """Up to ``most`` lines beyond the first ``beyond``, and whether nothing more will be printed."""
        with self.changed:
            self.changed.wait_for(
                lambda: len(self.lines) > beyond or self.state.status == "exited", timeout_s
            )
            return tuple(self.lines[beyond : beyond + most]), self.state.status == "exited"

    def finish(self, exit_code: int, oom_killed: bool = False) -> None:
        """End; what is printed later is lost."""
        with self.changed:
            if self.state.status != "exited":
                self.state = replace(
                    self.state,
                    status="exited",
                    exit_code=exit_code,
                    oom_killed=oom_killed,
                    finished_at=self._clock.now(),
                )
            self.changed.notify_all()

    def begin(self) -> None:
        """Run."""
        with self.changed:
            self.state = ContainerState("running", started_at=self._clock.now())


Script = Callable[[FakeContainer], int]
"""Runs on a thread of the engine and returns the exit code."""


@dataclass(frozen=True)
class Image:
    """An image, and the lines that building it prints."""

    build: tuple[str, ...] = ()
    pause: threading.Event | None = None


class FakeRunner(Runner):
    """Its containers belong to no server: they survive whoever started them."""

    name = "fake"
    read_only_mounts = True
    keeps_containers = True
    serves = True
    batch = 3
    """Lines of a log that are handed over at once."""

    def __init__(self, clock: Clock, script: Script, **images: Image) -> None:
        """``script``: what every host runs."""
        self.script = script
        self.images = {name.replace("_", "-"): image for name, image in images.items()}
        self.containers: dict[tuple[str, str], FakeContainer] = {}
        self.plans: list[JobPlan] = []
        self.retained: dict[str, datetime] = {}
        """Until when kept containers were told to stay."""
        self.broken: str | None = None
        """If set, every call fails with this text."""
        self.crowded: str | None = None
        """If set, why there is no machine for a job."""
        self.away = False
        """Whether the engine is: every call says so, and whatever runs runs on."""
        self._clock = clock
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def close(self) -> None:
        """End all scripts."""
        for container in list(self.containers.values()):
            container.killed.set()
            container.terminated.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)
            assert not thread.is_alive()

    def container(self, job: str, host: str = "algo-1") -> FakeContainer:
        """A host's container; raises ``RunnerError``."""
        self._check()
        with self._lock:
            found = self.containers.get((job, host))
        if found is None:
            raise RunnerError(f"no container for {job}/{host}")
        return found

    def ensure_image(self, image: str, progress: Progress) -> None:
        """Print the build's lines."""
        self._check()
        if image not in self.images:
            raise ImageNotFound(f"image {image!r} is not there; build it with `windtunnel image build`")
        for line in self.images[image].build:
            progress(line)
        pause = self.images[image].pause
        while pause is not None and not pause.wait(0.005):
            progress("still building")

    def reserve(self, job: str, hosts: Sequence[str]) -> str | None:  # noqa: ARG002 - they are all alike
        """Machines come when the test says so."""
        self._check()
        return self.crowded

    def start(self, plan: JobPlan) -> None:
        """Start what does not exist yet."""
        self._check()
        self.plans.append(plan)
        with self._lock:
            for host in plan.containers:
                old = self.containers.get((plan.job, host.host))
                if old is None or old.state.status == "created":
                    container = FakeContainer(host, self._clock)
                    if old is not None:  # the next process in a container that was kept
                        container.lines, container.identity = old.lines, old.identity
                    self.containers[plan.job, host.host] = container
                    container.begin()
                    thread = threading.Thread(target=self._run, args=(container,), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def state(self, job: str, host: str) -> ContainerState:
        """The state, ``absent`` if there is none."""
        self._check()
        with self._lock:
            found = self.containers.get((job, host))
        return ContainerState("absent") if found is None else found.state

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """Wait for the end."""
        with suppress(RunnerError):
            container = self.container(job, host)
            with container.changed:
                container.changed.wait_for(lambda: container.state.status == "exited", min(timeout_s, 0.05))
        return self.state(job, host)

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """Batches of up to `batch` lines; the cursor counts lines."""
        container = self.container(job, host)
        position = int(cursor or 0)
        while True:
            lines, ended = container.wait_for_lines(position, self.batch, 0.05)
            if self.away:
                self._check()
            if lines:
                position += len(lines)
                yield LogBatch(lines, str(position))
            elif ended:
                return
            elif (job, host) not in self.containers:
                raise RunnerError("the container was removed")

    def terminate(self, job: str, host: str) -> None:
        """SIGTERM: sets the event that the script may look at."""
        self._signal(job, host, "TERM")

    def kill(self, job: str, host: str) -> None:
        """SIGKILL: the container ends with 137."""
        self._signal(job, host, "KILL")

    def remove(self, job: str) -> None:
        """Remove the job's containers, running or not."""
        self._check()
        with self._lock:
            gone = [self.containers.pop(key) for key in list(self.containers) if key[0] == job]
        for container in gone:
            container.killed.set()
            container.finish(137)

    def address(self, job: str, host: str) -> tuple[str, int] | None:
        """Where its script has said that it answers."""
        self._check()
        with self._lock:
            found = self.containers.get((job, host))
        return None if found is None else found.address

    def retain(self, plan: JobPlan, until: datetime) -> bool:
        """Containers that have ended, and are not lost, are as if their next process was not started yet."""
        self._check()
        self.retained[plan.job] = until
        with self._lock:
            found = [self.containers.get((plan.job, host.host)) for host in plan.containers]
            alive = [c for c in found if c is not None and c.plan.keeper and c.state.status != "running"]
            if len(alive) < len(found):
                return False
            for container in alive:
                container.state = ContainerState("created")
            return True

    def fits(self, plan: JobPlan) -> bool:
        """Whether all containers are retained, of this image and with these mounts."""
        self._check()
        with self._lock:
            found = [(self.containers.get((plan.job, host.host)), host) for host in plan.containers]
            return all(
                old is not None
                and old.state.status == "created"
                and (old.plan.keeper, old.plan.image, old.plan.mounts) == (new.keeper, new.image, new.mounts)
                for old, new in found
            )

    def lose(self, job: str) -> None:
        """A job's containers disappear, with all that ran in them."""
        self.remove(job)

    def jobs(self) -> set[str]:
        """Jobs with containers."""
        self._check()
        with self._lock:
            return {job for job, _ in self.containers}

    def _signal(self, job: str, host: str, name: str) -> None:
        self._check()
        with self._lock:
            container = self.containers.get((job, host))
        if container is None or container.state.status == "exited":
            return
        container.signals.append(name)
        if name == "TERM":
            container.terminated.set()
        else:
            container.killed.set()
            container.finish(137)

    def _run(self, container: FakeContainer) -> None:
        try:
            container.finish(self.script(container))
        except Killed:
            container.finish(137)

    def _check(self) -> None:
        if self.away:
            raise RunnerUnavailable("Cannot reach Docker: the engine does not answer.")
        if self.broken is not None:
            raise RunnerError(self.broken)
