"""The `docker` runner with containers that outlive their jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

from windtunnel_local.runner.docker import kept_containers, log_marks
from windtunnel_local.runner.docker.client import Engine
from windtunnel_local.runner.docker.containers import DockerRunner
from windtunnel_local.runner.docker.keeper_orders import Orders
from windtunnel_local.runner.docker.logs import follow
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.runner.settings import RunnerSettings
from windtunnel_local.service.ground.containers import ContainerPlan, ContainerState, JobPlan, LogBatch

_POLL_S = 0.03
"""How often the end of a kept container's job is looked for, in a file."""
_LOOK_S = 1.0
"""How often its container is."""


class KeepingRunner(DockerRunner):
    """`DockerRunner`, where a plan may have a keeper: a container's state, output and signals are then those
    of the process that it was last ordered to run. The order is in the folder that its label names.
    """

    keeps_containers = True

    def __init__(self, settings: RunnerSettings, network: HostNetwork, engine: Engine | None = None) -> None:
        """As for `DockerRunner`."""
        engine = engine or Engine()
        super().__init__(settings, network, engine)
        self._engine_of_kept = engine
        self._keeping = kept_containers.Keeping(engine)
        self._orders: dict[str, Orders | None] = {}

    def start(self, plan: JobPlan) -> None:
        """See the port. Containers that were retained are given orders; who has orders keeps them."""
        self._forget(plan.job)
        for container in plan.containers:
            if container.keeper is not None:
                Orders(Path(container.keeper.folder)).prepare()
        super().start(plan)
        for container in plan.containers:
            if container.keeper is not None:
                orders = Orders(Path(container.keeper.folder))
                self._keeping.give(self._name(plan.job, container.host), orders, container)

    def state(self, job: str, host: str) -> ContainerState:
        """See the port."""
        container = super().state(job, host)
        orders = self._orders_of(job, host)
        return container if orders is None else kept_containers.state_of(orders, container)

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """See the port."""
        orders = self._orders_of(job, host)
        if orders is None:
            return super().wait(job, host, timeout_s)
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
            yield from super().logs(job, host, cursor)
            return
        order = orders.current()
        if order is None:
            return
        position, ended = log_marks.split_cursor(cursor, order)
        if log_marks.is_complete(ended):
            return

        def alive() -> bool:
            return super(KeepingRunner, self).state(job, host).status in ("created", "running")

        lines = follow(self._engine_of_kept.client(), self._name(job, host), position, alive)
        with closing(lines):  # type: ignore[type-var]  # it is a generator
            yield from log_marks.own_lines(lines, order, orders.mark(order), ended)

    def terminate(self, job: str, host: str) -> None:
        """See the port. An idle keeper is left alone: it would take the signal for its own end."""
        orders = self._orders_of(job, host)
        if orders is None or (orders.current() is not None and orders.ended() is None):
            super().terminate(job, host)

    def kill(self, job: str, host: str) -> None:
        """See the port. A keeper that does not answer goes with the job."""
        orders = self._orders_of(job, host)
        if orders is None:
            super().kill(job, host)
            return
        busy = orders.current() is not None and super().state(job, host).status == "running"
        if busy and not self._keeping.kill(self._name(job, host), orders):
            super().kill(job, host)

    def remove(self, job: str) -> None:
        """See the port."""
        super().remove(job)
        self._forget(job)

    def retain(self, plan: JobPlan, until: datetime) -> bool:
        """See the port. What the job has added to the image's files is removed; if it has changed or removed
        some of them, a container is not fit.
        """
        return self._keeping.retain(self._named(plan), until)

    def fits(self, plan: JobPlan) -> bool:
        """See the port."""
        return self._keeping.fits(self._named(plan))

    def _named(self, plan: JobPlan) -> dict[str, ContainerPlan]:
        return {self._name(plan.job, container.host): container for container in plan.containers}

    def _name(self, job: str, host: str) -> str:
        return self._names.container(job, host)

    def _orders_of(self, job: str, host: str) -> Orders | None:
        """The orders of a container that is kept, None for any other; known once it was looked at."""
        name = self._name(job, host)
        if name not in self._orders:
            found = self._keeping.inspect(name)
            if found is None:
                return None
            self._orders[name] = kept_containers.orders_of(found)
        return self._orders[name]

    def _forget(self, job: str) -> None:
        """A name may be used again for a container of the other kind."""
        prefix = self._name(job, "")
        for name in list(self._orders):
            if name.startswith(prefix):
                self._orders.pop(name, None)
