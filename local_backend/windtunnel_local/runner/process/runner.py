"""The `process` runner: the same toolkit and simulator as in the image, without a container around them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from windtunnel_local.runner.host_network import past_proxies
from windtunnel_local.runner.kind import Check
from windtunnel_local.runner.mounts import host_path, nested_mountpoints
from windtunnel_local.runner.process import supervise
from windtunnel_local.runner.process.log_file import follow_file
from windtunnel_local.runner.process.settings import ProcessSettings
from windtunnel_local.runner.process.simulator import install_commands
from windtunnel_local.runner.sources import containers_folder
from windtunnel_local.service.ground.containers import ContainerPlan, ContainerState, JobPlan, LogBatch, Mount
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.ports import Progress, Runner

_REQUIRED_MODULES = ("sagemaker_training", "sagemaker_pytorch_container", "torch", "torch_xla")
_INHERITED = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "TZ", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INHERITED_PREFIXES = ("PIP_", "http_", "https_", "no_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_ML = "/opt/ml"
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
        self, settings: ProcessSettings, required_modules: tuple[str, ...] = _REQUIRED_MODULES
    ) -> None:
        """Touches nothing yet. ``required_modules``: what the interpreter must have."""
        self._jobs_folder = settings.home / "jobs"
        self._python = settings.python
        self._environment = settings.environment
        self._required_modules = required_modules

    def ensure_image(self, image: str, progress: Progress) -> None:
        """See the port. There is no image; the interpreter must have what it would hold."""
        self.check_interpreter()
        progress(f"No image: {image} is not used by the process runner; jobs run in {self._python}.")

    def check_interpreter(self) -> None:
        """Raise ``RunnerUnavailable`` if jobs cannot run in the interpreter. Blocks: a second."""
        check = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if u.find_spec(m) is None])"
        command = [str(self._python), "-c", check, *self._required_modules]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunnerUnavailable(
                f"The interpreter {self._python} does not run ({error}). Set WINDTUNNEL_SIM_PYTHON to one "
                "that has `pip install windtunnel[sim]`."
            ) from error
        missing = answer.stdout.split() if answer.returncode == 0 else list(self._required_modules)
        if missing:
            raise RunnerUnavailable(
                f"The process runner needs {', '.join(missing)} in {self._python}. Run "
                f"`{self._python} -m pip install windtunnel[sim]`, set WINDTUNNEL_SIM_PYTHON to an "
                "interpreter that has it, or use containers with WINDTUNNEL_RUNNER=docker."
            )

    def start(self, plan: JobPlan) -> None:
        """See the port. Returns once the job's process runs."""
        if len(plan.containers) != 1:
            raise RunnerError(
                f"The process runner runs one host, and job {plan.job} wants {len(plan.containers)}. "
                "Several hosts need containers: WINDTUNNEL_RUNNER=docker."
            )
        host = plan.containers[0]
        folder = self._folder(host.job, host.host)
        if (folder / "run.json").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        _link_mounts(host.mounts)
        _map_hyperparameters(host.mounts)
        install_commands(containers_folder() / "neuron_sim", self._python, folder / "bin")
        (folder / "home").mkdir(exist_ok=True)
        token = folder / "token"
        if not token.exists():
            token.write_text(uuid.uuid4().hex)
        self._supervise(folder, host)

    def state(self, job: str, host: str) -> ContainerState:
        """See the port."""
        folder = self._folder(job, host)
        run, ended = _read(folder / "run.json"), _read(folder / "exit.json")
        if run is not None and ended is None and not _is_supervised(folder):
            ended = _read(folder / "exit.json") or _abandoned(folder)
        if ended is not None:
            started = _moment(run["started"]) if run else None
            return ContainerState(
                "exited", int(ended["exit_code"]), False, started, _moment(ended["finished"])
            )
        if run is None:
            return ContainerState("absent")
        return ContainerState("running", started_at=_moment(run["started"]))

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """See the port."""
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
            run = _read(self._folder(job, host) / "run.json")
            if run is not None:
                os.kill(int(run["pid"]), signal.SIGTERM)

    def kill(self, job: str, host: str) -> None:
        """See the port. Ends all processes of the job, also those that left its process group."""
        token = self._folder(job, host) / "token"
        if token.exists():
            supervise.kill_all(token.read_text())

    def remove(self, job: str) -> None:
        """See the port."""
        for folder in (self._jobs_folder / job / "process").glob("*"):
            self.kill(job, folder.name)
            self.wait(job, folder.name, 10)
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """See the port. There is nothing to let go of."""

    def jobs(self) -> set[str]:
        """See the port."""
        return {run.parts[-4] for run in self._jobs_folder.glob("*/process/*/run.json")}

    def _folder(self, job: str, host: str) -> Path:
        return self._jobs_folder / job / "process" / host

    def _supervise(self, folder: Path, plan: ContainerPlan) -> None:
        environment = self._job_environment(folder, plan)
        words = (*(plan.entrypoint or ()), *plan.command)
        program = shutil.which(words[0], path=environment["PATH"]) or words[0]
        orders = {
            "folder": str(folder),
            "command": [program, *(host_path(word, plan.mounts) for word in words[1:])],
            "environment": environment,
            "banner": (
                "Windtunnel: the process runner gives no isolation: this job sees the whole machine as the "
                f"user that started it, without limits of memory or network, in {self._python}."
            ),
        }
        # -I: nothing of the server's import path reaches the supervisor.
        command = [sys.executable, "-I", supervise.__file__]
        with (folder / "supervisor.log").open("ab") as log:
            subprocess.run(
                command,
                input=json.dumps(orders).encode(),
                stdout=log,
                stderr=log,
                cwd="/",
                env=self._inherited(),  # the job can read its parent's
                timeout=60,
                check=True,
            )
        deadline = time.monotonic() + 30
        while not (folder / "run.json").exists():
            if time.monotonic() > deadline:
                raise RunnerError(
                    f"Job {plan.job} did not start within 30 s; see {folder / 'supervisor.log'}."
                )
            time.sleep(_POLL_S / 3)

    def _inherited(self) -> dict[str, str]:
        """Of the server's environment what a job, and its parent, may see: no credentials."""
        return past_proxies(
            {
                name: value
                for name, value in self._environment.items()
                if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
            }
        )

    def _job_environment(self, folder: Path, plan: ContainerPlan) -> dict[str, str]:
        mapped = {name: host_path(value, plan.mounts) for name, value in plan.environment.items()}
        home = mapped.get("HOME", "")
        simulator = containers_folder() / "neuron_sim"
        path = f"{folder / 'bin'}:{self._python.parent}:{self._environment.get('PATH', os.defpath)}"
        return {
            **self._inherited(),
            # A container begins with an empty /var/tmp; this machine's outlives the job.
            "WINDTUNNEL_COMPILE_CACHE_DIR": str(folder / "neuron-compile-cache"),
            "SAGEMAKER_TRAINING_MODULE": "sagemaker_pytorch_container.training:main",
            "PYTHONUNBUFFERED": "1",
            **mapped,
            "HOME": home if Path(home).is_dir() else str(folder / "home"),
            "PATH": f"{path}:{mapped['PATH']}" if "PATH" in mapped else path,
            "PYTHONPATH": f"{simulator}:{mapped['PYTHONPATH']}" if "PYTHONPATH" in mapped else str(simulator),
            "SAGEMAKER_BASE_DIR": host_path(_ML, plan.mounts),
            # The toolkit would look algo-1 up in DNS for a quarter of an hour.
            "SM_STUDIO_LOCAL_MODE": "true",
            supervise.TOKEN_VARIABLE: (folder / "token").read_text(),
        }


def process_checks(settings: ProcessSettings) -> list[Check]:
    """What `windtunnel doctor` looks at for this runner."""
    try:
        ProcessRunner(settings).check_interpreter()
    except RunnerUnavailable as error:
        return [Check("interpreter", False, str(error))]
    return [Check("interpreter", True, str(settings.python))]


def _link_mounts(mounts: tuple[Mount, ...]) -> None:
    """Where a container would see a mount inside another, put a link. Idempotent."""
    for point, mount in nested_mountpoints(mounts):
        if point.is_symlink():
            continue
        point.parent.mkdir(parents=True, exist_ok=True)
        if point.is_dir():
            try:
                point.rmdir()
            except OSError as error:
                raise RunnerError(f"{mount.target} cannot be provided: {point} is not empty.") from error
        point.symlink_to(mount.source)


def _map_hyperparameters(mounts: tuple[Mount, ...]) -> None:
    """Paths in hyperparameters - the code's address, a script's ``/opt/ml/...`` - as paths of this host."""
    file = Path(host_path(f"{_ML}/input/config/hyperparameters.json", mounts))
    if not file.is_file():
        return
    values: dict[str, Any] = json.loads(file.read_text())
    file.write_text(json.dumps({name: _map_value(value, mounts) for name, value in values.items()}))


def _map_value(value: Any, mounts: tuple[Mount, ...]) -> Any:
    """Values are JSON in a string as the SDK sends them, or a bare string."""
    if not isinstance(value, str):
        return value
    try:
        inner = json.loads(value)
    except ValueError:
        return host_path(value, mounts)
    return json.dumps(host_path(inner, mounts)) if isinstance(inner, str) else value


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return content


def _is_supervised(folder: Path) -> bool:
    """Whether the supervisor lives: it holds the lock. Call only once run.json is there."""
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
    """The supervisor was killed: the job without it ends too, and counts as killed."""
    token = folder / "token"
    if token.exists():
        supervise.kill_all(token.read_text())
    ended = {"exit_code": _KILLED, "finished": time.time()}
    draft = folder / f"exit.{uuid.uuid4().hex}"
    draft.write_text(json.dumps(ended))
    draft.replace(folder / "exit.json")
    return ended


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
