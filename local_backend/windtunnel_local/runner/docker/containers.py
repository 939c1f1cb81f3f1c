"""The `docker` runner: one container a host."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, NotFound
from docker.errors import ImageNotFound as EngineImageNotFound
from docker.types import NetworkingConfig

from windtunnel_local.runner.docker import image, spec
from windtunnel_local.runner.docker.client import Engine, engine_errors
from windtunnel_local.runner.docker.logs import follow
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.runner.mounts import nested_mountpoints
from windtunnel_local.runner.settings import RunnerSettings
from windtunnel_local.service.errors import ImageNotFound, RunnerError
from windtunnel_local.service.ports import ContainerPlan, ContainerState, JobPlan, LogBatch, Progress

_STATUS = {
    "created": "created",
    "running": "running",
    "paused": "running",
    "restarting": "running",
    "removing": "absent",  # by somebody's `docker rm -f`: what it says of its end is not the script's
}
_WAIT_SLICE_S = 30.0


class DockerRunner:
    """Implements `windtunnel_local.service.ports.Runner` with the Docker engine. Holds no state of jobs:
    labels and names in the engine say all, so a restarted server adopts what runs.
    """

    name = "docker"

    def __init__(self, settings: RunnerSettings, network: HostNetwork, engine: Engine | None = None) -> None:
        """Connects at the first call, not here.

        Args:
            settings: home, image and what building it needs.
            network: this host's CA bundle, pip settings and proxies, handed on to jobs.
            engine: the connection; None: the one that DOCKER_HOST names.
        """
        self._settings = settings
        self._network = network
        self._engine = engine or Engine()
        self._names = spec.Names(settings.home.resolve())

    def close(self) -> None:
        """Close the connection to the engine; containers go on."""
        self._engine.close()

    def ensure_image(self, image_name: str, progress: Progress) -> None:
        """See the port. Our own image is built when it is missing: minutes, and 9 GB of disk."""
        client = self._engine.client()
        ours = image_name == self._settings.image
        with engine_errors(f"look for the image {image_name}"):
            try:
                client.images.get(image_name)
            except EngineImageNotFound:
                if not ours:
                    raise _image_not_found(image_name) from None
            else:
                if ours:
                    self._warn_if_stale(progress)
                return
        progress(f"The training image {image_name} is not built yet: building it now.")
        image.build_image(self._settings, progress, self._network, engine=self._engine)

    def start(self, plan: JobPlan) -> None:
        """See the port. A crash between creating and starting is made good by calling it again."""
        for container in plan.containers:
            _make_mountpoints(container)
        if any(spec.has_own_network(container) for container in plan.containers):
            self._ensure_network(plan.job)
        for container in plan.containers:
            self._create(container)
        for container in plan.containers:
            if self.state(container.job, container.host).status == "created":
                with engine_errors(f"start {container.host} of job {container.job}"):
                    self._engine.client().api.start(self._names.container(container.job, container.host))

    def state(self, job: str, host: str) -> ContainerState:
        """See the port."""
        with engine_errors(f"look at {host} of job {job}"):
            try:
                found = self._engine.client().api.inspect_container(self._names.container(job, host))
            except NotFound:
                return ContainerState("absent")
        return container_state(found["State"])

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """See the port."""
        deadline = time.monotonic() + timeout_s
        while True:
            state = self.state(job, host)
            left_s = deadline - time.monotonic()
            if state.status in ("exited", "absent") or left_s <= 0:
                return state
            if state.status == "created":  # the engine's own wait takes that for "not running"
                time.sleep(min(left_s, 0.05))
                continue
            # Whatever ends the call - the container, its removal, our time, the engine - the state tells.
            gone = (NotFound, requests.Timeout, requests.ConnectionError)
            with engine_errors(f"wait for {host} of job {job}"), contextlib.suppress(*gone):
                self._engine.client().api.wait(
                    self._names.container(job, host),
                    timeout=min(left_s, _WAIT_SLICE_S),  # type: ignore[arg-type]  # fractions work
                )

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """See the port."""

        def running() -> bool:
            return self.state(job, host).status in ("created", "running")

        return follow(self._engine.client(), self._names.container(job, host), cursor, running)

    def terminate(self, job: str, host: str) -> None:
        """See the port. The container's init hands the signal to `train`."""
        self._signal(job, host, "SIGTERM")

    def kill(self, job: str, host: str) -> None:
        """See the port."""
        self._signal(job, host, "SIGKILL")

    def remove(self, job: str) -> None:
        """See the port."""
        api = self._engine.client().api
        filters = self._filters(job)
        with engine_errors(f"remove the containers of job {job}"):
            for container in api.containers(all=True, filters=filters):
                _unless_gone(lambda c=container: api.remove_container(c["Id"], force=True, v=True))
            for network in api.networks(filters=filters):
                _unless_gone(lambda n=network: api.remove_network(n["Id"]))

    def jobs(self) -> set[str]:
        """See the port."""
        with engine_errors("list containers"):
            found = self._engine.client().api.containers(all=True, filters=self._filters(None))
        return {container["Labels"][spec.JOB_LABEL] for container in found}

    def _create(self, plan: ContainerPlan) -> None:
        api = self._engine.client().api
        networking = None
        if spec.has_own_network(plan):
            endpoint = api.create_endpoint_config(aliases=[plan.host])
            networks = {self._names.network(plan.job): endpoint}
            networking = NetworkingConfig(networks)  # type: ignore[arg-type]  # the stub has the wrong type
        with engine_errors(f"create {plan.host} of job {plan.job}"):
            try:
                api.create_container(
                    **spec.container_arguments(plan, self._names, self._network),
                    host_config=api.create_host_config(
                        **spec.host_arguments(plan, self._names, self._network)
                    ),
                    networking_config=networking,
                )
            except EngineImageNotFound:
                raise _image_not_found(plan.image) from None
            except APIError as error:
                if error.status_code != requests.codes.conflict:  # the name is taken: created before
                    raise

    def _ensure_network(self, job: str) -> None:
        api = self._engine.client().api
        with engine_errors(f"create the network of job {job}"):
            if not api.networks(filters=self._filters(job)):
                api.create_network(
                    self._names.network(job),
                    driver="bridge",
                    labels=self._names.labels(job),
                    check_duplicate=True,
                )

    def _signal(self, job: str, host: str, signal: str) -> None:
        with engine_errors(f"signal {host} of job {job}"):
            _unless_gone(lambda: self._engine.client().api.kill(self._names.container(job, host), signal))

    def _filters(self, job: str | None) -> dict[str, list[str]]:
        return {"label": [f"{name}={value}" for name, value in self._names.labels(job).items()]}

    def _warn_if_stale(self, progress: Progress) -> None:
        if image.image_status(self._settings, engine=self._engine).state == "stale":
            progress(
                f"The training image {self._settings.image} was built from other sources than these: "
                "`windtunnel image build` brings it up to date."
            )


def container_state(state: Mapping[str, Any]) -> ContainerState:
    """The port's view of the engine's ``State`` object."""
    status = _STATUS.get(state["Status"], "exited")
    exited = status == "exited"
    return ContainerState(
        status=status,  # type: ignore[arg-type]  # values of _STATUS are the port's
        exit_code=int(state["ExitCode"]) if exited else None,
        oom_killed=bool(state.get("OOMKilled")),
        started_at=_time(state.get("StartedAt")),
        finished_at=_time(state.get("FinishedAt")) if exited else None,
    )


def _time(text: str | None) -> datetime | None:
    """The engine's time; it writes the year 1 for "never". Nanoseconds are cut to microseconds."""
    if not text or text.startswith("0001-"):
        return None
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    moment = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return moment.replace(microsecond=int(fraction[:6].ljust(6, "0")))


def _unless_gone(call: Any) -> None:
    """Run an engine call; that its object is gone, going, or not running is what the caller wants anyway."""
    try:
        call()
    except NotFound:
        pass
    except APIError as error:
        if error.status_code != requests.codes.conflict:
            raise


def _make_mountpoints(plan: ContainerPlan) -> None:
    for mount in plan.mounts:
        if not Path(mount.source).exists():
            raise RunnerError(f"{mount.source}, to be mounted at {mount.target}, does not exist.")
    for point, mount in nested_mountpoints(plan.mounts):
        if point.exists():
            continue
        point.parent.mkdir(parents=True, exist_ok=True)
        if Path(mount.source).is_dir():
            point.mkdir(exist_ok=True)
        else:
            point.touch()


def _image_not_found(name: str) -> ImageNotFound:
    return ImageNotFound(
        f"The Docker engine has no image {name}. Pull it (`docker pull {name}`), build it "
        f"(`docker build -t {name} .`), or leave image_uri out to use Windtunnel's own training image."
    )
