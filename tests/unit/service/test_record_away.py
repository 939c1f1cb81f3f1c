"""The record cannot be read or written for a moment: no job is forgotten, no container kept for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.service.conftest import World, wait_for
from tests.unit.service.samples import request
from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting.meter import Meter


@pytest.fixture
def fails_once(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[Any], bool]], None]:
    """Have a call of the store fail, the first time that its argument is as told."""

    def arrange(name: str, when: Callable[[Any], bool]) -> None:
        works, failed = getattr(world.store, name), threading.Event()

        def call(argument: Any) -> Any:
            if not failed.is_set() and when(argument):
                failed.set()
                raise StoreUnavailable("unable to open database file")
            return works(argument)

        monkeypatch.setattr(world.store, name, call)

    return arrange


def test_a_job_that_is_recorded_runs(world: World, fails_once: Callable[..., None]) -> None:
    """Also where the record cannot be read right after: who asked would be refused, and the job never end."""
    fails_once("get_job", lambda _: threading.current_thread() is threading.main_thread())
    world.service.create(request())
    wait_for(lambda: not world.service.busy(), "the end")
    with pytest.raises(StoreUnavailable):
        world.service.describe("job")
    assert world.finish().lifecycle.status == "Completed"


def test_a_warm_pool_can_be_taken_over(world: World, fails_once: Callable[..., None]) -> None:
    """Although it could not be noted at once that it is ready; it would have stayed, unused, for ever."""
    fails_once("update_job", lambda job: job.warm_pool is not None and job.warm_pool.ready)
    asked = request()
    asked["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 60
    world.service.create(asked)
    wait_for(lambda: (pool := world.job().warm_pool) is not None and pool.ready, "the pool")
    world.clock.advance(61)
    world.finish()


def test_metrics_of_an_endpoint_wait(world: World, fails_once: Callable[..., None]) -> None:
    """They neither fail whoever writes them, as a server that leaves, nor are they lost."""
    fails_once("append_endpoint_metrics", lambda _: True)
    meter = Meter(Ports(world.store, world.runner, world.objects, world.clock, world.config))
    meter.add("e", "a", 200, 0.1, 0.01)
    meter.flush(all_of_it=True)
    assert world.store.endpoint_metric_names() == []
    meter.flush()
    assert ("e", "a", "Invocations") in world.store.endpoint_metric_names()
    meter.flush(all_of_it=True)
    assert len(world.store.endpoint_metrics("e", "a", "Invocations", 0, 1 << 62)) == 1
