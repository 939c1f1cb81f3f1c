"""The `docker` runner: one container a host."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, NotFound
from docker.errors import ImageNotFound as EngineImageNotFound
from docker.types import NetworkingConfig

from windtunnel_local.runner.docker import create_arguments, engine_end, image, shims
from windtunnel_local.runner.docker.client import Engine, engine_errors
from windtunnel_local.runner.docker.engine_time import engine_time
from windtunnel_local.runner.docker.log_cursor import Cursor
from windtunnel_local.runner.docker.logs import follow
from windtunnel_local.runner.docker.networks import Networks
from windtunnel_local.runner.docker.pipes import OutputPipes
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.runner.mounts import nested_mountpoints
from windtunnel_local.runner.settings import RunnerSettings
from windtunnel_local.service.ground.containers import (
    ContainerPlan,
    ContainerState,
    JobPlan,
    LogBatch,
    LogLine,
)
from windtunnel_local.service.ground.errors import ImageNotFound, RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.ports import Progress

_STATUS = {
    "created": "created",
    "running": "running",
    "paused": "running",
    "restarting": "running",
    "removing": "absent",  # by somebody's `docker rm -f`: what it says of its end is not the script's
}
_WAIT_SLICE_S = 30.0
_AWAY_PATIENCE_S = 60.0
"""For an engine that was there to come back before a job's start fails."""
_AWAY_POLL_S = 0.2


class DockerRunner:
    """Implements `windtunnel_local.service.ground.ports.Runner` with the Docker engine. Holds no state of jobs
    but their open pipes: labels and names in the engine say all, so a restarted server adopts what runs.
    """

    name = "docker"
    read_only_mounts = True

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
        self._names = create_arguments.Names(settings.home.resolve())
        self._networks = Networks(self._engine, self._names)
        self._pipes: dict[str, OutputPipes] = {}
        self._pipes_lock = threading.Lock()

    def close(self) -> None:
        """Close the connection to the engine; containers go on. Blocks for a call."""
        if self._engine.known:
            self._networks.remove_shared()
        self._engine.close()
        for container in list(self._pipes):
            self._let_go(container)

    def ensure_image(self, image_name: str, progress: Progress) -> None:
        """See the port. Our own image is built when it is missing: minutes, and 9 GB of disk.

        An engine that was there before is waited for, a minute at most.
        """
        deadline = time.monotonic() + _AWAY_PATIENCE_S
        while True:
            try:
                self._find_or_build(image_name, progress)
                return
            except RunnerUnavailable:
                if not self._engine.known or time.monotonic() > deadline:
                    raise
            progress("Waiting for the Docker engine, which does not answer any more")
            time.sleep(_AWAY_POLL_S)

    def _find_or_build(self, image_name: str, progress: Progress) -> None:
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
        isolated = any(container.isolated for container in plan.containers)
        created: dict[str, str | None] = {}
        for container in plan.containers:
            network = None
            if create_arguments.has_own_network(container):
                network = self._networks.ensure_own(plan.job, isolated)
            elif container.network is None:
                network = self._networks.ensure_shared()
            created[container.host] = self._create(container, network)
        for container in plan.containers:
            if self.state(container.job, container.host).status == "created":
                self._start(container, created[container.host])

    def state(self, job: str, host: str) -> ContainerState:
        """See the port."""
        api = self._engine.client().api
        with engine_errors(f"look at {host} of job {job}"):
            try:
                found = api.inspect_container(self._names.container(job, host))
            except NotFound:
                return ContainerState("absent")
            state = container_state(found["State"])
            return replace(state, lost=state.status == "exited" and engine_end.taken(api, found))

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

        container = self._names.container(job, host)
        self._hold(container)
        for batch in follow(self._engine.client(), container, cursor, running):
            cursor = batch.cursor
            yield batch
        lines = self._unread(container, self.state(job, host).finished_at)
        if lines:
            yield LogBatch(lines, cursor or str(Cursor()))
        self._let_go(container)

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
                for name in container.get("Names") or ():
                    self._let_go(name.removeprefix("/"))
                _unless_gone(lambda c=container: api.remove_container(c["Id"], force=True, v=True))
                if container["State"] == "created":  # or so says an engine that was killed meanwhile
                    shims.end(container["Id"])
            for network in api.networks(filters=filters):
                _unless_gone(lambda n=network: api.remove_network(n["Id"]))

    def jobs(self) -> set[str]:
        """See the port."""
        with engine_errors("list containers"):
            found = self._engine.client().api.containers(all=True, filters=self._filters(None))
        return {container["Labels"][create_arguments.JOB_LABEL] for container in found}

    # --- the pipes of containers that are followed ---

    def _hold(self, container: str) -> None:
        """Keep what the container prints while the engine is away; see `pipes`."""
        with engine_errors(f"look at {container}"), contextlib.suppress(NotFound):
            if not self._pipes.get(container):
                found = self._engine.client().api.inspect_container(container)
                if found["State"]["Status"] == "running":
                    self._keep_open(container, found["Id"])

    def _keep_open(self, container: str, container_id: str) -> None:
        pipes = OutputPipes(container_id)
        with self._pipes_lock:
            before, self._pipes[container] = self._pipes.get(container), pipes
        if before is not None:  # of an earlier container of this name
            before.close()

    def _unread(self, container: str, finished_at: datetime | None) -> tuple[LogLine, ...]:
        """What an ended container printed when no engine read it; the engine's own log is complete by now."""
        with self._pipes_lock:
            pipes = self._pipes.get(container)
            texts = pipes.rest() if pipes is not None else []
        stamp = int(finished_at.timestamp() * 1000) if finished_at else 0
        return tuple(LogLine(stamp, text) for text in texts)

    def _let_go(self, container: str) -> None:
        with self._pipes_lock:
            pipes = self._pipes.pop(container, None)
        if pipes is not None:
            pipes.close()

    def _start(self, plan: ContainerPlan, container_id: str | None) -> None:
        """``container_id``: None if the container was there before."""
        container = self._names.container(plan.job, plan.host)
        try:
            with engine_errors(f"start {plan.host} of job {plan.job}"):
                self._engine.client().api.start(container)
        finally:  # an engine that is killed just now may have started it
            if container_id is not None and plan.keeper is None:
                self._keep_open(container, container_id)

    def _create(self, plan: ContainerPlan, network: str | None) -> str | None:
        """The id of the container; None if it is there already."""
        api = self._engine.client().api
        networking = None
        if create_arguments.has_own_network(plan):
            endpoint = api.create_endpoint_config(aliases=[plan.host])
            networks = {network: endpoint}
            networking = NetworkingConfig(networks)  # type: ignore[arg-type]  # the stub has the wrong type
        with engine_errors(f"create {plan.host} of job {plan.job}"):
            try:
                made = api.create_container(
                    **create_arguments.container_arguments(plan, self._names, self._network),
                    host_config=api.create_host_config(
                        **create_arguments.host_arguments(plan, self._network, network)
                    ),
                    networking_config=networking,
                )
            except EngineImageNotFound:
                raise _image_not_found(plan.image) from None
            except APIError as error:
                if error.status_code != requests.codes.conflict:  # the name is taken: created before
                    raise
                return None
        return str(made["Id"])

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
    if status == "running" and engine_time(state.get("StartedAt")) is None:
        # The engine was killed before its start call came to an end. It may never see the container's end.
        status = "created"
    exited = status == "exited"
    return ContainerState(
        status=status,  # type: ignore[arg-type]  # values of _STATUS are the port's
        exit_code=int(state["ExitCode"]) if exited else None,
        oom_killed=bool(state.get("OOMKilled")),
        started_at=engine_time(state.get("StartedAt")),
        finished_at=engine_time(state.get("FinishedAt")) if exited else None,
    )


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
        f"ClientError: The Docker engine has no image {name}. Pull it (`docker pull {name}`), build it "
        f"(`docker build -t {name} .`), or name one of AWS's Neuron training images "
        "(pytorch-training-neuronx), for which Windtunnel's own runs."
    )
