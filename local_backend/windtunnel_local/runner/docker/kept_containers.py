"""Containers that a warm pool keeps for the next job: their labels, their states and the calls to them."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound

from windtunnel_local.runner.docker.client import Engine, engine_errors, unless_gone
from windtunnel_local.runner.docker.keeper_orders import Orders
from windtunnel_local.service.ground import machine_memory
from windtunnel_local.service.ground.containers import ContainerPlan, ContainerState

_log = logging.getLogger(__name__)

KEEPER_LABEL = "windtunnel.keeper"
"""Label of a kept container: the folder on this machine through which it gets its orders."""
SHAPE_LABEL = "windtunnel.shape"
"""Label of a kept container: a hash of all that cannot change while it runs, see `shape`."""
KNOCK = "SIGURG"
"""Signal that tells a keeper to look at its folder. A process without a handler ignores it."""

_COMMAND = "windtunnel-keeper"
_CLEAN_PATIENCE_S = 15.0
_KILL_PATIENCE_S = 5.0
_POLL_S = 0.03
_LOOK_S = 1.0
"""Seconds between two looks whether the container of an awaited keeper still runs."""


def arguments(plan: ContainerPlan) -> dict[str, Any]:
    """Arguments of the engine's create call that a kept container has instead of its own; empty for any other."""
    if plan.keeper is None:
        return {}
    return {
        "entrypoint": [_COMMAND],
        "command": [plan.keeper.target],
    }


def labels(plan: ContainerPlan) -> dict[str, str]:
    """Labels that mark a container as kept, and from which `Keeping.fits` tells whether it fits a job."""
    if plan.keeper is None:
        return {}
    return {KEEPER_LABEL: plan.keeper.folder, SHAPE_LABEL: shape(plan)}


def shape(plan: ContainerPlan) -> str:
    """A hash of all that a running container cannot change for another job."""
    fixed = replace(plan, command=(), entrypoint=None, environment={}, labels={})
    text = json.dumps(asdict(fixed), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def orders_of(found: Mapping[str, Any]) -> Orders | None:
    """The orders of an inspected container; None: it is not a kept one."""
    folder = (found["Config"].get("Labels") or {}).get(KEEPER_LABEL)
    return Orders(Path(folder)) if folder else None


def state_of(orders: Orders, container: ContainerState) -> ContainerState:
    """The state of a kept container's job: ``container`` is what the engine says of the container.

    Without an order there is no process of a job: "created" while the container can take one.
    """
    if container.status in ("created", "absent"):
        return container
    if orders.current() is None:
        return ContainerState("created" if container.status == "running" else "absent")
    ended, started_at = orders.ended(), _moment(orders.started())
    if ended is not None:
        code = ended.get("exit_code")
        return ContainerState(
            "exited",
            exit_code=code if isinstance(code, int) else 1,
            oom_killed=ended.get("oom_killed") is True,
            memory_bytes=container.memory_bytes,
            started_at=started_at,
            finished_at=_moment(ended),
        )
    return replace(container, started_at=started_at or container.started_at)


class Keeping:
    """Calls to kept containers, by their names. Safe from several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def knock(self, container: str) -> None:
        """Signal the keeper to look at its folder now. A keeper that is gone is no error."""
        with engine_errors(f"signal {container}"), unless_gone():
            self._engine.client().api.kill(container, KNOCK)

    def give(self, container: str, orders: Orders, plan: ContainerPlan) -> None:
        """Order the plan's process, with the memory that is free now. Idempotent."""
        if orders.current() is None:
            self._limit(container, machine_memory.limit_bytes(plan.memory_bytes))
        command = [*(plan.entrypoint or ()), *plan.command]
        orders.give(command, plan.environment)
        self.knock(container)

    def _limit(self, container: str, memory_bytes: int | None) -> None:
        """Change the memory limit; one that the engine cannot change stays as it is."""
        if memory_bytes is not None:
            with engine_errors(f"limit the memory of {container}"), suppress(APIError):
                self._engine.client().api.update_container(
                    container, mem_limit=memory_bytes, memswap_limit=memory_bytes
                )

    def kill(self, container: str, orders: Orders) -> bool:
        """End the job's process with SIGKILL, and keep the container; False: the keeper does not answer."""
        orders.kill()
        self.knock(container)
        return self._soon(container, lambda: orders.ended() is not None, _KILL_PATIENCE_S)

    def _reset(self, container: str, orders: Orders, until: datetime) -> bool:
        """Clean the container, so that the next job finds nothing of this one. Idempotent.

        False: that failed, and the log has the reason.
        """
        orders.keep_until(until.timestamp())
        if orders.current() is None:
            return True
        if orders.ended() is None:
            return False
        identity = orders.clean()
        self.knock(container)
        if not self._soon(container, lambda: orders.cleaned(identity) is not None, _CLEAN_PATIENCE_S):
            _log.info("%s is not kept: its keeper does not answer.", container)
            return False
        problems = list(orders.cleaned(identity) or ())
        if problems:
            _log.info("%s is not kept: %s", container, "; ".join(problems[:5]))
            return False
        orders.withdraw()
        return True

    def retain(self, containers: Mapping[str, ContainerPlan], until: datetime) -> bool:
        """`Runner.retain` of the containers of these names."""
        for name in containers:
            found = self.inspect(name)
            orders = orders_of(found) if found and found["State"]["Status"] == "running" else None
            if orders is None or not self._reset(name, orders, until):
                return False
        return True

    def fits(self, containers: Mapping[str, ContainerPlan]) -> bool:
        """`Runner.fits` of the containers of these names."""
        for name, plan in containers.items():
            found = self.inspect(name)
            if found is None or found["State"]["Status"] != "running":
                return False
            orders = orders_of(found)
            if orders is None or orders.current() is not None:
                return False
            if found["Config"]["Labels"].get(SHAPE_LABEL) != shape(plan):
                return False
            with engine_errors(f"look at the image {plan.image}"):
                if self._engine.client().images.get(plan.image).id != found["Image"]:
                    return False  # built anew since
        return True

    def _soon(self, container: str, condition: Callable[[], bool], patience_s: float) -> bool:
        """Wait until the condition holds; False: not in time, or the container does not run any more."""
        begun = looked = time.monotonic()
        while not condition():
            now = time.monotonic()
            if now > begun + patience_s:
                return False
            if now > looked + _LOOK_S:
                looked, found = now, self.inspect(container)
                if found is None or found["State"]["Status"] != "running":
                    return condition()
            time.sleep(_POLL_S)
        return True

    def inspect(self, container: str) -> dict[str, Any] | None:
        """The engine's answer to an inspection of the container; None: there is no such container."""
        with engine_errors(f"look at {container}"):
            try:
                found: dict[str, Any] = self._engine.client().api.inspect_container(container)
            except NotFound:
                return None
        return found


def _moment(record: Mapping[str, Any] | None) -> datetime | None:
    try:
        return datetime.fromisoformat(record["at"]) if record else None
    except (KeyError, TypeError, ValueError):
        return None
