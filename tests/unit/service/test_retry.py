"""RetryStrategy: another attempt after a fault of the platform, and after nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.crash import Fuse
from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World
from tests.unit.service.samples import channel, request
from tests.unit.service.test_spot import path, streams

ATTEMPT = ["Starting", "Downloading", "Training"]


def retrying(name: str = "job", attempts: int = 2, **members: Any) -> dict[str, Any]:
    members = {"CheckpointConfig": {"S3Uri": f"s3://out/ckpt/{name}"}, **members}
    return request(name, RetryStrategy={"MaximumRetryAttempts": attempts}, **members)


class Losing:
    """A script with a checkpoint whose container is taken away so many times."""

    def __init__(self, world: World, times: int, how: str = "vanishes") -> None:
        self._world = world
        self._times = times
        self._how = how

    def __call__(self, container: FakeContainer) -> int:
        path = container.path("/opt/ml/checkpoints/attempts")
        attempt = int(path.read_text()) if path.exists() else 0
        container.print(f"attempt {attempt}")
        if attempt >= self._times:
            container.write("/opt/ml/model/weights", "w")
            return 0
        container.write("/opt/ml/checkpoints/attempts", str(attempt + 1))
        name = container.plan.job
        while self._world.job(name).lifecycle.secondary != "Training" or [
            f"attempt {attempt}"
        ] not in streams(self._world, name):
            container.sleep(0.002)
        if self._how == "vanishes":
            self._world.runner.remove(name)
        else:  # the engine went down and took it along
            container.state = replace(container.state, lost=True)
            return 137
        return container.sleep_until(threading.Event())


@pytest.mark.parametrize("how", ["vanishes", "lost"])
def test_a_job_whose_containers_are_lost_starts_again(world: World, how: str) -> None:
    """From its checkpoints, with the reason in the transition; AWS's Restarting, then Starting."""
    world.runner.script = Losing(world, 2, how)
    assert world.run(retrying()).lifecycle.status == "Completed"
    assert path(world) == [*ATTEMPT, "Restarting", *ATTEMPT, "Restarting", *ATTEMPT, "Uploading", "Completed"]
    first = world.job().lifecycle.transitions[3]
    assert first.message.startswith("Restarting the training job, retry 1 of 2: InternalServerError: the ")
    assert [lines[:1] for lines in streams(world)] == [["attempt 0"], ["attempt 1"], ["attempt 2"]]


def test_no_more_often_than_asked(world: World) -> None:
    """Then the job fails with the last reason."""
    world.runner.script = Losing(world, 2)
    life = world.run(retrying(attempts=1)).lifecycle
    assert life.count("Restarting") == 1
    assert str(life.failure_reason).startswith(
        "InternalServerError: the container of host algo-1 disappeared"
    )


@pytest.mark.parametrize(
    ("exit_code", "members", "says"),
    [
        (1, {}, "AlgorithmError: Exit Code: 1"),
        (137, {}, "AlgorithmError: Exit Code: 137"),
        (0, {"InputDataConfig": [channel("train", "s3://data/none")]}, "ClientError: "),
    ],
)
def test_never_for_the_scripts_or_the_requests_own_fault(
    world: World, exit_code: int, members: dict[str, Any], says: str
) -> None:
    """What would fail again is not tried again."""
    world.runner.script = lambda _: exit_code
    life = world.run(retrying(**members)).lifecycle
    assert str(life.failure_reason).startswith(says)
    assert life.count("Restarting") == 0


def test_a_fault_of_the_backend_counts_as_the_platforms(world: World) -> None:
    """A job does not pay for a bug of ours if it may try again."""
    start, failed = world.runner.start, threading.Event()

    def once(plan: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError("oops")
        start(plan)

    world.runner.start = once  # type: ignore[method-assign]
    assert world.run(retrying()).lifecycle.status == "Completed"
    assert path(world)[:4] == ["Starting", "Downloading", "Restarting", "Starting"]


def test_the_other_hosts_are_ended(world: World) -> None:
    """All hosts start again together."""
    lost = threading.Event()

    def script(container: FakeContainer) -> int:
        if lost.is_set() and world.job().lifecycle.count("Restarting"):
            return 0
        if container.plan.host == "algo-2":
            while world.secondary() != "Training":
                container.sleep(0.002)
            lost.set()
            container.state = replace(container.state, lost=True)
            return 255
        return container.sleep_until(container.terminated)

    world.runner.script = script
    assert world.run(retrying(hosts=2)).lifecycle.status == "Completed"
    assert len(streams(world)) == len(streams(world, host="algo-2")) == 2


def test_a_crash_at_any_call(world: World) -> None:
    """Of the server, while it restarts a job: as many attempts as needed, and nothing left behind."""
    survived, calls = False, 0
    while not survived:
        calls += 7
        name = f"job-{calls}"
        world.runner.script = Losing(world, 1)
        survived = world.outlives(Fuse(calls), retrying(name))
        assert world.finish(name).lifecycle.status == "Completed", calls
        assert path(world, name) == [*ATTEMPT, "Restarting", *ATTEMPT, "Uploading", "Completed"], calls
        assert world.objects.read("out", f"ckpt/{name}/attempts") == b"1"
        world.service.shutdown()
    assert calls > 40
