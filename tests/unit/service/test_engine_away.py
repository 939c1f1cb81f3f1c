"""The engine goes, and comes back: no job ends for that, and nobody waits for an answer."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import FAST, World, wait_for
from tests.unit.service.samples import request
from windtunnel_local.service.ground.billed_time import training_seconds
from windtunnel_local.service.ground.errors import JobInUse, RunnerUnavailable

LOST = "InternalServerError: the container engine, or this machine, went down"


def train(world: World, **members: Any) -> threading.Event:
    """A job that prints, waits for the event, and prints again; returns when it trains."""
    go = threading.Event()

    def script(container: FakeContainer) -> int:
        container.print("before")
        while not go.wait(0.005) and not container.terminated.is_set():
            pass
        container.print("after")
        return 0

    world.runner.script = script
    world.service.create(request(**members))
    wait_for(lambda: world.lines() == ["before"])
    return go


def test_a_job_trains_on_however_long_the_engine_is_away(world: World) -> None:
    """What it prints meanwhile is read when the engine is back; the server answers all the time."""
    go = train(world)
    world.runner.away = True
    world.clock.advance(1000)
    go.set()
    wait_for(lambda: world.runner.containers["job", "algo-1"].state.status == "exited")
    time.sleep(0.3)  # more than six attempts
    assert world.service.describe("job")["TrainingJobStatus"] == "InProgress"
    assert world.secondary() == "Training"
    assert world.lines() == ["before"]
    world.runner.away = False
    assert world.finish().lifecycle.status == "Completed"
    assert world.lines() == ["before", "after"]


def test_a_server_that_starts_without_the_engine_adopts_later(world: World) -> None:
    """As after a power cut, when the engine comes last."""
    go = train(world)
    world.fuse.blow()
    world.runner.away = True
    heir = world.crash_and_serve()
    time.sleep(0.1)
    assert heir.describe("job")["TrainingJobStatus"] == "InProgress"
    world.runner.away = False
    go.set()
    assert world.finish().lifecycle.status == "Completed"
    assert world.lines() == ["before", "after"]


def test_a_stop_is_kept_for_the_engine(world: World) -> None:
    """It is accepted at once, and carried out when it can be, with the whole grace for the script."""
    train(world)
    container = world.runner.containers["job", "algo-1"]
    world.runner.away = True
    world.service.stop("job")
    assert world.service.describe("job")["TrainingJobStatus"] == "Stopping"
    world.clock.advance(1000)
    time.sleep(0.6)  # so that the thread of the job has seen the engine away at that time
    world.runner.away = False
    assert world.finish().lifecycle.status == "Stopped"
    assert container.signals == ["TERM"]


def test_a_job_that_cannot_start_fails_soon(world: World) -> None:
    """Where there is no engine, nobody should wait for it; the message says what to do."""
    world.runner.away = True
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.finished)
    assert world.job().lifecycle.failure_reason == "Cannot reach Docker: the engine does not answer."
    wait_for(lambda: not world.service.busy())


def test_an_engine_that_is_away_when_a_place_is_chosen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is back for the image: a job that has not begun loses nothing, and gets a place that nobody has had."""

    def away() -> set[str]:
        raise RunnerUnavailable("Cannot reach Docker")

    monkeypatch.setattr(world.runner, "jobs", away)
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.finished)
    assert world.job().lifecycle.status == "Completed"
    assert world.job().slot.startswith("job.")
    monkeypatch.undo()


def test_a_clean_up_waits_too(world: World) -> None:
    """The containers are removed when the engine is back, by the server that is there."""
    world.config = replace(world.config, pace=replace(FAST, clean_up_s=0.01))
    world.serve()
    go = train(world)
    removed = world.runner.remove

    def remove(job: str) -> None:
        world.runner.remove = removed  # type: ignore[method-assign]
        world.runner.away = True
        removed(job)

    world.runner.remove = remove  # type: ignore[method-assign]
    go.set()
    wait_for(lambda: world.runner.away)
    assert world.job().lifecycle.status == "Completed"
    assert world.service.busy()
    with pytest.raises(JobInUse, match="not removed yet"):
        world.service.delete("job")  # else a new job of its name would find its containers, and its thread
    world.runner.away = False
    world.finish()
    world.service.delete("job")


@pytest.mark.parametrize("code", [0, 137, 143, 255])
def test_a_container_that_the_engine_took(world: World, code: int) -> None:
    """That is the platform's failure, whatever the exit code: also of a script that ends well when told to end."""
    train(world)
    end(world, code)
    life = world.finish().lifecycle
    assert life.status == "Failed"
    assert str(life.failure_reason).startswith(LOST)


def test_a_lost_container_whose_script_had_ended_well(world: World) -> None:
    """AWS's toolkit writes /opt/ml/output/success last: the job has all it was to do."""
    train(world)
    container = world.runner.container("job")
    container.write("/opt/ml/output/success", "")
    container.write("/opt/ml/model/weights", "w")
    end(world, 255)
    assert world.finish().lifecycle.status == "Completed"


def test_a_lost_container_whose_script_had_failed(world: World) -> None:
    """Its own words stay the reason, where the engine makes up an exit code."""
    train(world)
    world.runner.container("job").write("/opt/ml/output/failure", "it broke")
    end(world, 255)
    assert world.finish().lifecycle.failure_reason == "AlgorithmError: it broke"


def test_an_end_that_nobody_saw_ends_the_bill(world: World) -> None:
    """What has passed between the container's end and the engine's return is nobody's."""
    go = train(world)
    world.clock.advance(10)
    out_of_sight(world)
    world.clock.advance(5)
    go.set()
    wait_for(lambda: world.runner.containers["job", "algo-1"].state.status == "exited")
    world.clock.advance(8 * 3600)
    world.runner.away = False
    life = world.finish().lifecycle
    assert (life.status, training_seconds(life)) == ("Completed", 15)


def test_a_job_that_runs_on_out_of_sight_is_billed(world: World) -> None:
    """With --live-restore the script has the whole time, and uses it."""
    go = train(world)
    world.clock.advance(10)
    out_of_sight(world)
    world.clock.advance(600)
    world.runner.away = False
    time.sleep(0.3)  # so that it is seen to run
    go.set()
    life = world.finish().lifecycle
    assert (life.status, training_seconds(life)) == ("Completed", 610)


def test_a_clock_set_while_the_engine_is_away(world: World) -> None:
    """The engine's time of the end is of no use then; the bill ends no earlier than the container was last seen."""
    go = train(world)
    world.clock.advance(10)
    time.sleep(0.3)
    out_of_sight(world)
    world.clock.set(-7200)
    go.set()
    wait_for(lambda: world.runner.containers["job", "algo-1"].state.status == "exited")
    world.clock.set(7200)
    world.clock.advance(3600)
    world.runner.away = False
    assert training_seconds(world.finish().lifecycle) == 10


def test_an_attempt_that_ended_while_the_engine_was_away(world: World) -> None:
    """Of a job that starts again, what has passed since is not billed either."""
    train(world, RetryStrategy={"MaximumRetryAttempts": 1})
    world.clock.advance(10)
    out_of_sight(world)
    world.clock.advance(5)
    container = world.runner.containers["job", "algo-1"]
    world.runner.script = lambda _: 0
    end(world, 137, container)
    wait_for(lambda: container.state.status == "exited")
    world.clock.advance(8 * 3600)
    world.runner.away = False
    life = world.finish().lifecycle
    assert (life.status, life.count("Restarting"), training_seconds(life)) == ("Completed", 1, 15)


def test_an_engine_that_goes_between_image_and_start(world: World) -> None:
    """The job waits in Downloading, and is not billed: the download is done again, whole, as by the next server."""
    started = world.runner.start

    def start(plan: object) -> None:
        world.runner.start = started  # type: ignore[method-assign]
        world.runner.away = True
        started(plan)  # type: ignore[arg-type]

    world.runner.start = start  # type: ignore[method-assign]
    world.service.create(request())
    wait_for(lambda: world.runner.away)
    world.clock.advance(8 * 3600)
    time.sleep(0.6)  # so that the thread of the job has seen the engine away at that time
    assert world.secondary() == "Downloading"
    world.runner.away = False
    life = world.finish().lifecycle
    assert (life.status, training_seconds(life)) == ("Completed", 1)


def out_of_sight(world: World) -> None:
    """The engine goes, and its absence is noticed."""
    world.runner.away = True
    time.sleep(0.3)


def end(world: World, code: int, container: FakeContainer | None = None) -> None:
    """The engine comes back without the container."""
    container = container or world.runner.container("job")
    with container.changed:
        now = world.clock.now()
        container.state = replace(
            container.state, status="exited", exit_code=code, lost=True, finished_at=now
        )
        container.changed.notify_all()
    container.killed.set()
    container.terminated.set()
