"""kill -9 of the server, and the next one goes on."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from tests.fakes.crash import Fuse
from tests.fakes.runner import FakeContainer, Image
from tests.unit.service.conftest import World, succeed, wait_for
from tests.unit.service.samples import channel, request
from windtunnel_local.service.ground.billed_time import training_seconds
from windtunnel_local.service.ground.errors import JobNotFound, RunnerError
from windtunnel_local.service.ground.hosting import EndpointState, Fleet, Instance, Resource, Variant
from windtunnel_local.service.hosting.records import encoded

LINES = [f"line {i}" for i in range(8)]


def chatty(container: FakeContainer) -> int:
    """Prints, and leaves a model behind."""
    for line in LINES:
        container.print(line)
    container.write("/opt/ml/model/weights", container.plan.host)
    return 0


@pytest.mark.parametrize("after_effect", [False, True])
def test_a_crash_at_every_call(world: World, after_effect: bool) -> None:
    """Wherever the server dies, the next one completes the job: every line once, one model, no leftovers.

    Two hosts; the n-th call of any port is the last one of the first server, before or
    after it had its effect.
    """
    world.runner.script = chatty
    world.objects.put_text("data", "train/a.csv", "a")
    survived = False
    calls = 0
    while not survived:
        calls += 1
        name = f"job-{calls}"
        accepted = request(name, hosts=2, InputDataConfig=[channel("train", "s3://data/train")])
        survived = world.outlives(Fuse(calls, after_effect), accepted)
        life = world.finish(name).lifecycle
        assert life.status == "Completed", (calls, life)
        for host in ("algo-1", "algo-2"):
            assert world.lines(name, host) == LINES, calls
        assert world.job(name).model_artifact == f"s3://out/models/{name}/output/model.tar.gz"
        world.service.shutdown()
    assert calls > 30


def test_a_job_that_runs_is_adopted(world: World) -> None:
    """The container runs on; its output goes on where it stopped."""
    go = threading.Event()

    def script(container: FakeContainer) -> int:
        container.print("before")
        container.sleep_until(go)
        container.print("after")
        return 0

    world.runner.script = script
    world.train(request())
    wait_for(lambda: world.lines() == ["before"])
    world.crash_and_serve()
    assert world.service.busy()
    go.set()
    assert world.finish().lifecycle.status == "Completed"
    assert world.lines() == ["before", "after"]
    assert len(world.runner.plans) == 1, "nothing was started twice"


def test_a_job_that_ended_meanwhile_is_finished(world: World) -> None:
    """Nobody watched when it failed."""
    go = threading.Event()

    def script(container: FakeContainer) -> int:
        container.sleep_until(go)
        container.print("last words")
        container.write("/opt/ml/output/failure", "it broke")
        return 1

    world.runner.script = script
    world.train(request())
    world.fuse.blow()
    go.set()
    wait_for(lambda: world.runner.container("job").state.status == "exited")
    world.crash_and_serve()
    assert world.finish().lifecycle.failure_reason == "AlgorithmError: it broke, exit code: 1"
    assert world.lines() == ["last words"]


@pytest.mark.parametrize("exit_code", [0, 1])
def test_what_nobody_watched_is_not_billed(world: World, exit_code: int) -> None:
    """`windtunnel down` in the evening; the job ends a minute later. The next morning's bill is a minute."""
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go) or exit_code
    world.train(request())
    world.service.shutdown()
    world.clock.advance(60)
    go.set()
    wait_for(lambda: world.runner.container("job").state.status == "exited")
    world.clock.advance(12 * 3600)
    world.serve().resume()
    life = world.finish().lifecycle
    assert life.status == ("Completed" if exit_code == 0 else "Failed")
    assert training_seconds(life) == 60
    trained = next(t for t in life.transitions if t.status == "Training")
    assert trained.end == trained.start + timedelta(seconds=60)


def test_a_stop_that_nobody_watched_is_not_billed(world: World) -> None:
    """Stopped, and the server killed: what the containers ran counts, not the time without a server."""
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go)
    world.train(request())
    container = world.runner.container("job")
    world.service.stop("job")
    wait_for(lambda: container.signals == ["TERM"])
    world.fuse.blow()
    world.clock.advance(30)
    go.set()
    wait_for(lambda: container.state.status == "exited")
    world.clock.advance(3600)
    world.crash_and_serve()
    assert training_seconds(world.finish().lifecycle) == 30


def test_the_grace_period_goes_on_after_a_crash(world: World) -> None:
    """It is not granted anew."""

    def script(container: FakeContainer) -> int:
        container.sleep_until(threading.Event())
        return 0

    world.runner.script = script
    world.train(request())
    container = world.runner.container("job")
    world.service.stop("job")
    wait_for(lambda: container.signals == ["TERM"])
    world.clock.advance(100)
    world.crash_and_serve()
    world.clock.advance(20)
    assert world.finish().lifecycle.status == "Stopped"


def test_a_stop_of_an_adopted_job(world: World) -> None:
    """The new server can stop what the old one started; the cause survives another crash."""
    world.runner.script = lambda container: container.sleep_until(container.terminated)
    world.train(request())
    world.crash_and_serve().stop("job")
    world.crash_and_serve()
    assert world.finish().lifecycle.secondary == "Stopped"


def test_leftovers_of_finished_jobs_go(world: World) -> None:
    """Containers and folders of jobs that ended, or that nobody remembers, do not pile up."""
    world.run(request())
    folder = world.config.jobs / "job"
    (folder / "hosts").mkdir(parents=True)
    world.runner.script = lambda container: container.sleep_until(threading.Event())
    world.runner.start(world.runner.plans[0])
    world.crash_and_serve()
    wait_for(lambda: world.runner.jobs() == set() and not folder.exists())


def test_instances_of_endpoints_stay_while_their_record_does(world: World) -> None:
    """Those of an endpoint that nobody remembers go as leftovers of jobs do."""
    variant = Variant("v", "m", {}, "ml.c5.large", 1, 1.0, 1)
    kept = Instance("kept", "", 1, "v", 1)
    state = EndpointState(Fleet("c", 1, (variant,)), instances=(kept,), made=1)
    now = world.clock.now()
    world.store.insert_resource(
        Resource("endpoint", "kept", "arn:e", now, now, {}, "InService", encoded(state))
    )
    folders = {slot: world.config.jobs / slot for slot in (kept.slot, Instance("gone", "", 1, "v", 1).slot)}
    for folder in folders.values():
        folder.mkdir(parents=True)
    world.crash_and_serve()
    wait_for(lambda: not folders["endpoint_gone.1"].exists())
    assert folders[kept.slot].exists()


def test_a_leftover_that_stays_keeps_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine refuses to remove one container: what else is left goes now, and this one when it can."""
    refusing = threading.Event()
    refusing.set()
    removed = world.runner.remove

    def remove(slot: str) -> None:
        if slot == "a" and refusing.is_set():
            raise RunnerError("removal is in progress")
        removed(slot)

    monkeypatch.setattr(world.runner, "remove", remove)
    folders = [world.config.jobs / name for name in ("a", "b")]
    for folder in folders:
        (folder / "hosts").mkdir(parents=True)
    world.crash_and_serve()
    wait_for(lambda: not folders[1].exists())
    assert folders[0].exists()
    refusing.clear()
    wait_for(lambda: not folders[0].exists())


def test_jobs_begin_while_leftovers_are_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take as long as an engine likes. Also one with the name of such a leftover."""
    remove, removes, go_on = world.runner.remove, threading.Event(), threading.Event()
    came_in_time: list[bool] = []

    def slowly(slot: str) -> None:
        if slot == "old":
            removes.set()
            came_in_time.append(go_on.wait(10))
        remove(slot)

    monkeypatch.setattr(world.runner, "remove", slowly)
    (world.config.jobs / "old" / "hosts").mkdir(parents=True)
    world.crash_and_serve()
    assert removes.wait(20)
    for name in ("new", "old"):
        world.service.create(request(name))
    for name in ("new", "old"):
        wait_for(lambda n=name: world.job(n).lifecycle.finished, f"the end of {name}")
        assert world.job(name).lifecycle.status == "Completed"
    go_on.set()
    wait_for(lambda: not (world.config.jobs / "old").exists())
    assert came_in_time == [True]


def test_shutdown_leaves_jobs_running(world: World) -> None:
    """A server that goes down in order is no reason to lose a job."""
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go) or succeed(container)
    world.train(request())
    world.service.shutdown()
    assert not world.service.busy()
    assert world.runner.container("job").signals == []
    assert world.secondary() == "Training"
    go.set()
    world.serve().resume()
    assert world.finish().lifecycle.status == "Completed"


def test_resuming_without_an_engine(world: World) -> None:
    """The server comes up; the job fails with the engine's complaint instead of hanging."""
    world.runner.images["windtunnel-training"] = Image(pause=threading.Event())
    world.service.create(request())
    world.fuse.blow()
    world.runner.broken = "no Docker engine"
    world.crash_and_serve()
    wait_for(lambda: world.job().lifecycle.finished and not world.service.busy())
    assert world.job().lifecycle.failure_reason == "no Docker engine"
    world.runner.broken = None
    with pytest.raises(JobNotFound):
        world.service.describe("other")
