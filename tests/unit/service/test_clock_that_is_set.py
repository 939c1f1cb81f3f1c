"""A wall clock that is set amid a job, or a machine that slept, changes neither its limits nor its bill."""

from __future__ import annotations

import pytest

from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World
from tests.unit.service.samples import request
from windtunnel_local.service.ground.billed_time import training_seconds


def patient(container: FakeContainer) -> int:
    """Runs until SIGTERM."""
    container.sleep_until(container.terminated)
    return 0


@pytest.mark.parametrize("jump_s", [3600, -3600, -2])
def test_a_job_that_is_stopped(world: World, jump_s: float) -> None:
    """It is billed what it ran, not what the clock says."""
    world.runner.script = patient
    world.train(request(StoppingCondition={"MaxRuntimeInSeconds": 900}))
    world.clock.advance(10)
    world.clock.set(jump_s)
    world.clock.advance(20)
    world.service.stop("job")
    life = world.finish().lifecycle
    assert (life.secondary, training_seconds(life)) == ("Stopped", 30)


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_job_that_ends(world: World, jump_s: float) -> None:
    """The engine's times are by the wall clock: an end before the server's start was seen by it all the same."""
    world.runner.script = patient
    world.train(request())
    container = world.runner.container("job")
    world.clock.advance(10)
    world.clock.set(jump_s)
    world.clock.advance(20)
    container.terminated.set()
    life = world.finish().lifecycle
    assert (life.secondary, training_seconds(life)) == ("Completed", 30)


def test_the_longest_run(world: World) -> None:
    """A clock that is set back gives a job no more time."""
    world.runner.script = patient
    world.train(request(StoppingCondition={"MaxRuntimeInSeconds": 20}))
    world.clock.set(-3600)
    world.clock.advance(20)
    life = world.finish().lifecycle
    assert (life.secondary, training_seconds(life)) == ("MaxRuntimeExceeded", 20)


def test_the_time_after_a_new_server(world: World) -> None:
    """A server that adopts a job after the clock was set counts on."""
    world.runner.script = patient
    world.train(request())
    world.clock.advance(10)
    world.crash_and_serve()
    world.clock.set(3600)
    world.clock.advance(20)
    world.service.stop("job")
    assert training_seconds(world.finish().lifecycle) == 30
