"""The `docker` runner: one container a host, which may outlive its job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

from docker.errors import ImageNotFound

from windtunnel_local.runner.docker import kept_containers, log_marks
from windtunnel_local.runner.docker.client import Engine, engine_errors, image_not_found
from windtunnel_local.runner.docker.containers import Containers
from windtunnel_local.runner.docker.image import build_image, image_status
from windtunnel_local.runner.docker.keeper_orders import Orders
from windtunnel_local.runner.docker.logs import follow
from windtunnel_local.runner.docker.settings import DockerSettings
from windtunnel_local.runner.docker.shared_files import check_shared
from windtunnel_local.service.ground.containers import ContainerPlan, ContainerState, JobPlan, LogBatch
from windtunnel_local.service.ground.errors import RunnerUnavailable
from windtunnel_local.service.ground.ports import Progress, Runner

_POLL_S = 0.03
"""Seconds between two looks at the file that tells the end of a kept container's job."""
_LOOK_S = 1.0
"""Seconds between two looks at that container."""
_START_PATIENCE_S = 60.0
"""Seconds that a job's start waits for an engine that answered before."""
_AWAY_POLL_S = 0.2


class DockerRunner(Runner):
    """Runs jobs in containers of the Docker engine.

    Where a plan has a keeper, the container outlives its job: its state, output and signals are then those of
    the process that it was last ordered to run. The order is in the folder that the container's label names.
    """

    name = "docker"
    read_only_mounts = True
    keeps_containers = True
    serves = True

    def __init__(self, settings: DockerSettings) -> None:
        self._settings = settings
        self._engine = Engine()
        self._containers = Containers(settings.home, settings.network, self._engine)
        self._keeping = kept_containers.Keeping(self._engine)
        self._orders: dict[str, Orders | None] = {}
        self._shared = False

    def close(self) -> None:
        """See the port. Blocks for a call."""
        self._containers.close()
        self._engine.close()

    def ensure_image(self, image: str, progress: Progress) -> None:
        """See the port. Builds our own image if it is missing, which takes minutes and gigabytes of disk.

        Waits up to a minute for an engine that answered before.
        """
        deadline = time.monotonic() + _START_PATIENCE_S
        while True:
            try:
                self._find_or_build(image, progress)
                return
            except RunnerUnavailable:
                if not self._engine.known or time.monotonic() > deadline:
                    raise
            progress("Waiting for the Docker engine, which does not answer any more")
            time.sleep(_AWAY_POLL_S)

    def _find_or_build(self, image: str, progress: Progress) -> None:
        ours = image == self._settings.image
        if not self._shared:  # said before an image is built for minutes
            check_shared(self._engine, self._settings.home)
            self._shared = True
        with engine_errors(f"look for the image {image}"):
            try:
                self._engine.client().images.get(image)
            except ImageNotFound:
                if not ours:
                    raise image_not_found(image) from None
            else:
                if ours and image_status(self._settings, engine=self._engine).state == "stale":
                    progress(
                        f"The training image {image} was built from other sources than these: "
                        "`windtunnel image build` brings it up to date."
                    )
                return
        progress(f"The training image {image} is not built yet: building it now.")
        build_image(self._settings, progress, engine=self._engine)

    def start(self, plan: JobPlan) -> None:
        """See the port. Gives orders to retained containers; one that has orders keeps them."""
        self._forget(plan.job)
        for container in plan.containers:
            if container.keeper is not None:
                Orders(Path(container.keeper.folder)).prepare()
        self._containers.start(plan)
        for container in plan.containers:
            if container.keeper is not None:
                orders = Orders(Path(container.keeper.folder))
                self._keeping.give(self._containers.name(plan.job, container.host), orders, container)

    def state(self, job: str, host: str) -> ContainerState:
        container = self._containers.state(job, host)
        orders = self._orders_of(job, host)
        return container if orders is None else kept_containers.state_of(orders, container)

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        orders = self._orders_of(job, host)
        if orders is None:
            return self._containers.wait(job, host, timeout_s)
        deadline = time.monotonic() + timeout_s
        while True:
            state = self.state(job, host)
            if state.status in ("exited", "absent") or time.monotonic() >= deadline:
                return state
            look = min(deadline, time.monotonic() + _LOOK_S)
            while time.monotonic() < look and orders.ended() is None:
                time.sleep(_POLL_S)

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """See the port. The cursor at one job's end is where the next job's output begins."""
        orders = self._orders_of(job, host)
        if orders is None:
            yield from self._containers.logs(job, host, cursor)
            return
        order = orders.current()
        if order is None:
            return
        position, ended = log_marks.split_cursor(cursor, order)
        if log_marks.is_complete(ended):
            return

        def alive() -> bool:
            return self._containers.state(job, host).status in ("created", "running")

        lines = follow(self._engine.client(), self._containers.name(job, host), position, alive)
        with closing(lines):  # type: ignore[type-var]  # it is a generator
            yield from log_marks.own_lines(lines, order, orders.mark(order), ended)

    def terminate(self, job: str, host: str) -> None:
        """See the port. An idle keeper is left alone: it would take the signal for its own end."""
        orders = self._orders_of(job, host)
        if orders is None or (orders.current() is not None and orders.ended() is None):
            self._containers.terminate(job, host)

    def kill(self, job: str, host: str) -> None:
        """See the port. A keeper that does not answer goes with the job."""
        orders = self._orders_of(job, host)
        if orders is None:
            self._containers.kill(job, host)
            return
        busy = orders.current() is not None and self._containers.state(job, host).status == "running"
        if busy and not self._keeping.kill(self._containers.name(job, host), orders):
            self._containers.kill(job, host)

    def remove(self, job: str) -> None:
        self._containers.remove(job)
        self._forget(job)

    def jobs(self) -> set[str]:
        return self._containers.jobs()

    def address(self, job: str, host: str) -> tuple[str, int] | None:
        return self._containers.address(job, host)

    def retain(self, plan: JobPlan, until: datetime) -> bool:
        """See the port. What the job has added to the image's files is removed; if it has changed or removed
        some of them, a container is not fit.
        """
        return self._keeping.retain(self._named(plan), until)

    def fits(self, plan: JobPlan) -> bool:
        return self._keeping.fits(self._named(plan))

    def _named(self, plan: JobPlan) -> dict[str, ContainerPlan]:
        return {self._containers.name(plan.job, container.host): container for container in plan.containers}

    def _orders_of(self, job: str, host: str) -> Orders | None:
        """The orders of a kept container, None for any other. The engine is asked once."""
        name = self._containers.name(job, host)
        if name not in self._orders:
            found = self._keeping.inspect(name)
            if found is None:
                return None
            self._orders[name] = kept_containers.orders_of(found)
        return self._orders[name]

    def _forget(self, job: str) -> None:
        """Forget a job's orders: the next container of its name may be kept where this one was not."""
        prefix = self._containers.name(job, "")
        for name in list(self._orders):
            if name.startswith(prefix):
                self._orders.pop(name, None)
