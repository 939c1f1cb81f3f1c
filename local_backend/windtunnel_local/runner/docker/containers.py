"""The containers of jobs in the Docker engine: one for each host of a job."""

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

from windtunnel_local.runner.docker import create_arguments, cut_off, engine_end, forwarding, shims
from windtunnel_local.runner.docker.client import (
    Engine,
    engine_errors,
    image_not_found,
    is_conflict,
    unless_gone,
)
from windtunnel_local.runner.docker.engine_time import engine_time
from windtunnel_local.runner.docker.log_cursor import Cursor
from windtunnel_local.runner.docker.logs import follow
from windtunnel_local.runner.docker.networks import Networks, own_address
from windtunnel_local.runner.docker.pipes import OutputPipes
from windtunnel_local.runner.docker.shared_files import is_missing, not_shared
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.runner.mounts import nested_mountpoints
from windtunnel_local.service.ground import machine_memory
from windtunnel_local.service.ground.containers import (
    ContainerPlan,
    ContainerState,
    JobPlan,
    LogBatch,
    LogLine,
)
from windtunnel_local.service.ground.errors import RunnerError

_STATUS = {
    "created": "created",
    "running": "running",
    "paused": "running",
    "restarting": "running",
    "removing": "absent",  # by somebody's `docker rm -f`: what it says of its end is not the script's
}
_WAIT_SLICE_S = 30.0


class Containers:
    """The containers of one home's jobs, one for each host.

    A restarted server finds them by their labels and names in the engine. Only the open pipes of running
    containers are kept here. The methods are those of `Runner`.
    """

    def __init__(self, home: Path, network: HostNetwork, engine: Engine) -> None:
        """Connects at the first call, not here. ``network``: this host's CA bundle, pip settings and proxies."""
        self._network = network
        self._engine = engine
        self._names = create_arguments.Names(home.resolve())
        self._networks = Networks(self._engine, self._names)
        self._pipes: dict[str, OutputPipes] = {}
        self._pipes_lock = threading.Lock()

    def name(self, job: str, host: str) -> str:
        """The name of a host's container in the engine."""
        return self._names.container(job, host)

    def close(self) -> None:
        """Close all pipes, and remove the shared network if no container uses it. Containers run on."""
        if self._engine.known:
            self._networks.remove_shared()
        for container in list(self._pipes):
            self._let_go(container)

    def start(self, plan: JobPlan) -> None:
        """As `Runner.start`. After a crash between creating and starting, call it again."""
        created = self.create(plan)
        for container in plan.containers:
            if self.state(container.job, container.host).status == "created":
                self._start(container, created[container.host])
                if not container.isolated and cut_off.is_of_a_cloud():
                    cut_off.cut_off(
                        self._engine.client(),
                        self.name(container.job, container.host),
                        container.image,
                        self._names.labels(container.job),
                    )
            forwarding.forward(self._engine, self.name(container.job, container.host), container)

    def create(self, plan: JobPlan) -> dict[str, str | None]:
        """Create network and containers. Idempotent. Returns, by host, a new container's id; None: it was there."""
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
        return created

    def state(self, job: str, host: str) -> ContainerState:
        api = self._engine.client().api
        with engine_errors(f"look at {host} of job {job}"):
            try:
                found = api.inspect_container(self.name(job, host))
            except NotFound:
                return ContainerState("absent")
            state = container_state(found["State"], found.get("HostConfig", {}).get("Memory") or None)
            # Podman's containers need no engine to run: none takes them along.
            may_be_lost = state.status == "exited" and not self._engine.kind.podman
            return replace(state, lost=may_be_lost and engine_end.taken(api, found))

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
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
                    self.name(job, host),
                    timeout=min(left_s, _WAIT_SLICE_S),  # type: ignore[arg-type]  # fractions work
                )

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        def running() -> bool:
            return self.state(job, host).status in ("created", "running")

        container = self.name(job, host)
        self._hold(container)
        for batch in follow(self._engine.client(), container, cursor, running):
            cursor = batch.cursor
            yield batch
        lines = self._unread(container, self.state(job, host).finished_at)
        if lines:
            yield LogBatch(lines, cursor or str(Cursor()))
        self._let_go(container)

    def terminate(self, job: str, host: str) -> None:
        """As `Runner.terminate`. The container's init hands the signal to `train`."""
        self._signal(job, host, "SIGTERM")

    def kill(self, job: str, host: str) -> None:
        self._signal(job, host, "SIGKILL")

    def remove(self, job: str) -> None:
        api = self._engine.client().api
        filters = self._filters(job)
        with engine_errors(f"remove the containers of job {job}"):
            for container in api.containers(all=True, filters=filters):
                for name in container.get("Names") or ():
                    self._let_go(name.removeprefix("/"))
                with unless_gone():
                    api.remove_container(container["Id"], force=True, v=True)
                if container["State"] == "created":  # or so says an engine that was killed meanwhile
                    shims.end(container["Id"])
            self._networks.remove_own(filters)

    def jobs(self) -> set[str]:
        with engine_errors("list containers"):
            found = self._engine.client().api.containers(all=True, filters=self._filters(None))
        return {container["Labels"][create_arguments.JOB_LABEL] for container in found}

    def address(self, job: str, host: str) -> tuple[str, int] | None:
        with engine_errors(f"look at {host} of job {job}"):
            try:
                found = self._engine.client().api.inspect_container(self.name(job, host))
            except NotFound:
                return None
            settings = found["NetworkSettings"]
            ports = (settings["Ports"] or {}).items()
            bound = [(port, binding) for port, bindings in ports for binding in bindings or ()]
            if not bound:
                return None
            port, binding = bound[0]
            own = own_address(settings["Networks"].values())
            return (own, int(port.split("/")[0])) if own else (binding["HostIp"], int(binding["HostPort"]))

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
        """The lines that an ended container printed while no engine read them. Call once the engine's log is read."""
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
        """Start a container. ``container_id``: None if the container was there before."""
        container = self.name(plan.job, plan.host)
        try:
            with engine_errors(f"start {plan.host} of job {plan.job}"):
                self._engine.client().api.start(container)
        finally:  # an engine that is killed just now may have started it
            if container_id is not None and plan.keeper is None:
                self._keep_open(container, container_id)

    def _create(self, plan: ContainerPlan, network: str | None) -> str | None:
        """Create a container and return its id; None if it is there already."""
        api = self._engine.client().api
        networking = None
        if create_arguments.has_own_network(plan):
            endpoint = api.create_endpoint_config(aliases=[plan.host])
            networks = {network: endpoint}
            networking = NetworkingConfig(networks)  # type: ignore[arg-type]  # the stub has the wrong type
        rootless = self._engine.kind.rootless
        # The labels are the plan's: by them a later job finds that a kept container fits, however full memory is.
        limited = replace(plan, memory_bytes=machine_memory.limit_bytes(plan.memory_bytes))
        with engine_errors(f"create {plan.host} of job {plan.job}"):
            try:
                made = api.create_container(
                    **create_arguments.container_arguments(
                        plan, self._names, self._network, rootless=rootless
                    ),
                    host_config=api.create_host_config(
                        **create_arguments.host_arguments(limited, self._network, network, rootless=rootless)
                    ),
                    networking_config=networking,
                )
            except EngineImageNotFound:
                raise image_not_found(plan.image) from None
            except APIError as error:
                missing = [m.source for m in plan.mounts if m.source in str(error.explanation)]
                if is_missing(error) and missing:  # they are here, as `create` has seen
                    raise not_shared(max(missing, key=len)) from error
                if not is_conflict(error):
                    raise
                return None  # the name is taken: created before
        return str(made["Id"])

    def _signal(self, job: str, host: str, signal: str) -> None:
        with engine_errors(f"signal {host} of job {job}"), unless_gone():
            self._engine.client().api.kill(self.name(job, host), signal)

    def _filters(self, job: str | None) -> dict[str, list[str]]:
        return {"label": [f"{name}={value}" for name, value in self._names.labels(job).items()]}


def container_state(state: Mapping[str, Any], memory_bytes: int | None = None) -> ContainerState:
    """Translate the engine's ``State`` object; ``memory_bytes``: the container's limit."""
    status = _STATUS.get(state["Status"], "exited")
    if status == "running" and engine_time(state.get("StartedAt")) is None:
        # The engine was killed before its start call came to an end. It may never see the container's end.
        status = "created"
    exited = status == "exited"
    started_at = engine_time(state.get("StartedAt"))
    finished_at = engine_time(state.get("FinishedAt")) if exited else None
    if started_at and finished_at:
        # The engine stamps the start once its start call returns: a process may be over by then.
        started_at = min(started_at, finished_at)
    return ContainerState(
        status=status,  # type: ignore[arg-type]  # values of _STATUS are the port's
        exit_code=int(state["ExitCode"]) if exited else None,
        oom_killed=bool(state.get("OOMKilled")),
        memory_bytes=memory_bytes,
        started_at=started_at,
        finished_at=finished_at,
    )


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
