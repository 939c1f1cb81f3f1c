"""The `process` runner: the same toolkit and simulator as in the image, without a container around them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from windtunnel_local.runner.without_container import supervise
from windtunnel_local.runner.without_container.interpreter import REQUIRED_MODULES, Interpreter
from windtunnel_local.runner.without_container.log_file import follow_file
from windtunnel_local.runner.without_container.orders import prepare
from windtunnel_local.runner.without_container.record import exited, jobs_with, moment, read, write
from windtunnel_local.service.ground.containers import ContainerState, JobPlan, LogBatch
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.service.ground.ports import Progress, Runner

_POLL_S = 0.03
_KILLED = 137


class ProcessRunner(Runner):
    """Runs a job's process on this machine, which must be Linux, without a container around it.

    A job sees the whole machine, its limits are not enforced, and it runs on one host
    only; its log says so first. Its record is in ``<home>/jobs/<job>/process/<host>``,
    so a restarted server adopts what runs.
    """

    name = "process"
    read_only_mounts = False
    """A mount is a link here, through which a job can write."""

    def __init__(
        self, home: Path, interpreter: Interpreter, required_modules: tuple[str, ...] = REQUIRED_MODULES
    ) -> None:
        """Does nothing yet. ``home``: the backend's. ``required_modules``: modules that the interpreter must have."""
        self._jobs_folder = home / "jobs"
        self._interpreter = interpreter
        self._required_modules = required_modules

    def ensure_image(self, image: str, progress: Progress) -> None:
        """See the port. There is no image; the interpreter must have what it would hold."""
        self._interpreter.require(self.name, self._required_modules)
        python = self._interpreter.python
        progress(f"No image: {image} is not used by the process runner; jobs run in {python}.")

    def start(self, plan: JobPlan) -> None:
        """See the port. Returns once the job's process runs."""
        if len(plan.containers) != 1:
            raise RunnerError(
                f"The process runner runs one host, and job {plan.job} wants {len(plan.containers)}. "
                "Several hosts need WINDTUNNEL_RUNNER=docker, or a cluster: WINDTUNNEL_RUNNER=slurm."
            )
        host = plan.containers[0]
        folder = self._folder(host.job, host.host)
        if (folder / "run.json").exists():
            return
        banner = (
            "the process runner gives no isolation: this job sees the whole machine as the user that started it,"
            f" without limits of memory or network, in {self._interpreter.python}."
        )
        self._supervise(folder, prepare(folder, host, self._interpreter, banner))

    def state(self, job: str, host: str) -> ContainerState:
        folder = self._folder(job, host)
        run, ended = read(folder / "run.json"), read(folder / "exit.json")
        if run is not None and ended is None and not _is_supervised(folder):
            ended = read(folder / "exit.json") or _abandoned(folder)
        if ended is not None:
            return exited(run, ended)
        if run is None:
            return ContainerState("absent")
        return ContainerState("running", started_at=moment(run["started"]))

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        deadline = time.monotonic() + timeout_s
        state = self.state(job, host)
        while state.status == "running" and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            state = self.state(job, host)
        return state

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """See the port. A line's time is when it was read."""

        def running() -> bool:
            return self.state(job, host).status == "running"

        return follow_file(self._folder(job, host) / "output.log", cursor, running)

    def terminate(self, job: str, host: str) -> None:
        """See the port. `train` gets the signal, as a container's first process would."""
        if self.state(job, host).status == "running":
            (self._folder(job, host) / "terminate").touch()

    def kill(self, job: str, host: str) -> None:
        """See the port. Ends all processes of the job, also those that left its process group."""
        token = self._folder(job, host) / "token"
        if token.exists():
            supervise.kill_all(token.read_text())

    def remove(self, job: str) -> None:
        for folder in (self._jobs_folder / job / "process").glob("*"):
            self.kill(job, folder.name)
            self.wait(job, folder.name, 10)
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """See the port. There is nothing to let go of."""

    def jobs(self) -> set[str]:
        return jobs_with("*/process/*/run.json", self._jobs_folder)

    def _folder(self, job: str, host: str) -> Path:
        return self._jobs_folder / job / "process" / host

    def _supervise(self, folder: Path, orders: dict[str, Any]) -> None:
        # -I: nothing of the server's import path reaches the supervisor.
        command = [sys.executable, "-I", supervise.__file__]
        with (folder / "supervisor.log").open("ab") as log:
            subprocess.run(
                command,
                input=json.dumps(orders).encode(),
                stdout=log,
                stderr=log,
                cwd=folder,
                env=self._interpreter.inherited(),  # the job can read its parent's
                timeout=60,
                check=True,
            )
        deadline = time.monotonic() + 30
        while not (folder / "run.json").exists():
            if time.monotonic() > deadline:
                raise RunnerError(
                    f"The job's process did not start within 30 s; see {folder / 'supervisor.log'}."
                )
            time.sleep(_POLL_S / 3)


def _is_supervised(folder: Path) -> bool:
    """Whether the supervisor lives, which holds a lock while it does. Call only once run.json is there."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _abandoned(folder: Path) -> dict[str, Any]:
    """End a job whose supervisor was killed. The job counts as killed, too."""
    token = folder / "token"
    if token.exists():
        supervise.kill_all(token.read_text())
    ended = {"exit_code": _KILLED, "finished": time.time()}
    write(folder / "exit.json", ended)
    return ended
