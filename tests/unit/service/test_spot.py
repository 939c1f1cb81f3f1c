"""Managed spot training: interruptions, restarts, checkpoints, and what is billed."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.crash import Fuse
from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World, wait_for
from tests.unit.service.samples import request
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.job import SpotTerms
from windtunnel_local.service.running import spot

ATTEMPT = ["Starting", "Downloading", "Training"]
AGAIN = [*ATTEMPT, "Interrupted"]
CHECKPOINT = "/opt/ml/checkpoints/step"


def spot_request(name: str = "job", interruptions: int = 2, **members: Any) -> dict[str, Any]:
    """A managed spot job that is interrupted after 30 to 90 seconds of training each time."""
    asked = {
        "WINDTUNNEL_SPOT_INTERRUPTIONS": str(interruptions),
        "WINDTUNNEL_SPOT_SEED": "7",
        "WINDTUNNEL_SPOT_MEAN_SECONDS": "60",
    }
    members = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
        "CheckpointConfig": {"S3Uri": f"s3://out/ckpt/{name}"},
        "Environment": asked,
        **members,
    }
    return request(name, **members)


def pass_time(world: World, container: FakeContainer, seconds: float) -> None:
    """Let time pass once the backend knows that the container runs."""
    while world.job(container.plan.job).lifecycle.secondary != "Training":
        container.sleep(0.002)
    world.clock.advance(seconds)


class Steps:
    """A script of three steps with a checkpoint after each, that is interrupted between them."""

    def __init__(self, world: World, steps: int = 3) -> None:
        self._world = world
        self._steps = steps

    def __call__(self, container: FakeContainer) -> int:
        path = container.path(CHECKPOINT)
        step = int(path.read_text()) if path.exists() else 0
        container.print(f"from {step}")
        container.write(CHECKPOINT, str(step + 1))
        container.write(f"/opt/windtunnel/counters/rank-{container.plan.host[-1]}.jsonl", '{"kind":"step"}\n')
        if step + 1 < self._steps:
            pass_time(self._world, container, 100)
            container.sleep_until(container.terminated)
            container.print("SIGTERM")
            return 1
        container.write("/opt/ml/model/weights", f"after {step + 1} steps")
        return 0


def streams(world: World, name: str = "job", host: str = "algo-1") -> list[list[str]]:
    """What each attempt printed, without the backend's own line, in order of the attempts."""
    names = [s.name for s in world.store.log_streams(f"{name}/") if s.host == host]
    logs = [[event.message for event in world.store.read_log(stream, 0, 1000)] for stream in names]
    return [[line for line in lines if not line.startswith("Windtunnel:")] for lines in logs]


def path(world: World, name: str = "job") -> list[str]:
    return [transition.status for transition in world.job(name).lifecycle.transitions]


def test_a_job_that_is_interrupted_twice(world: World) -> None:
    """It goes on from its checkpoints, with a log stream an attempt, and is billed less than it trained."""
    world.runner.script = Steps(world)
    job = world.run(spot_request())
    assert path(world) == [*AGAIN, *AGAIN, *ATTEMPT, "Uploading", "Completed"]
    assert streams(world) == [["from 0", "SIGTERM"], ["from 1", "SIGTERM"], ["from 2"]]
    assert world.objects.read("out", "ckpt/job/step") == b"3"
    assert job.model_artifact == "s3://out/models/job/output/model.tar.gz"
    told = world.service.describe("job")
    assert told["TrainingTimeInSeconds"] == 200
    assert told["BillableTimeInSeconds"] == 60
    assert told["EnableManagedSpotTraining"] is True
    said = [t["StatusMessage"] for t in told["SecondaryStatusTransitions"] if t["Status"] == "Interrupted"]
    assert ["simulated: 1 of 2, seed 7" in said[0], "simulated: 2 of 2" in said[1]] == [True, True]
    counted = json.loads(world.objects.read("out", "models/job/windtunnel/counters.json"))
    assert counted["attempts"] == 3
    assert counted["other"]["steps"] == 3, "the work of all attempts was done, and counts"
    assert counted["seconds"]["training_total"] == 200
    assert counted["spot"] == {
        "interruptions_simulated": 2,
        "interruptions_asked": 2,
        "seed": 7,
        "discount_assumed": 0.7,
    }


def test_the_log_says_what_is_simulated_and_what_is_assumed(world: World) -> None:
    """Once at the head of each attempt."""
    world.runner.script = Steps(world, steps=2)
    world.run(spot_request(interruptions=1))
    names = [s.name for s in world.store.log_streams("job/")]
    heads = [world.store.read_log(name, 0, 1)[0].message for name in names]
    assert [head.split(" (seed")[0] for head in heads] == [
        f"Windtunnel: managed spot training is simulated: {n} of 1 interruptions so far" for n in (0, 1)
    ]
    assert "assumes that spot capacity saves 70% of the on-demand price" in heads[0]


def test_two_hosts_are_interrupted_together(world: World) -> None:
    """Each has its stream an attempt; the first host's checkpoint of a name is the one that is kept."""
    world.runner.script = Steps(world)
    assert world.run(spot_request(hosts=2)).lifecycle.status == "Completed"
    assert len(streams(world)) == len(streams(world, host="algo-2")) == 3


def test_a_script_that_ignores_sigterm(world: World) -> None:
    """SIGKILL after the grace period of 120 s, then the next attempt."""

    def script(container: FakeContainer) -> int:
        if world.job().lifecycle.count("Interrupted"):
            return 0
        pass_time(world, container, 100)
        return container.sleep_until(threading.Event())

    world.runner.script = script
    world.service.create(spot_request(interruptions=1))
    world.reach("Interrupted")
    container = world.runner.container("job")
    wait_for(lambda: container.signals == ["TERM"])
    world.clock.advance(119)
    assert world.secondary() == "Interrupted"
    world.clock.advance(1)
    assert world.finish().lifecycle.status == "Completed"
    assert container.signals == ["TERM", "KILL"]


def test_checkpoints_are_in_s3_while_the_job_trains(world: World) -> None:
    """Before any interruption; and a deletion goes out as well."""
    deleted = threading.Event()

    def script(container: FakeContainer) -> int:
        container.write(CHECKPOINT, "1")
        container.sleep_until(deleted)
        container.path(CHECKPOINT).unlink()
        return container.sleep_until(container.terminated)

    world.runner.script = script
    world.service.create(spot_request())
    wait_for(lambda: "ckpt/job/step" in world.objects.keys("out"), "the checkpoint in S3")
    deleted.set()
    wait_for(lambda: "ckpt/job/step" not in world.objects.keys("out"), "its deletion")
    assert world.secondary() == "Training"
    world.service.stop("job")
    assert world.finish().lifecycle.status == "Stopped"


def test_interruptions_that_wait_for_a_checkpoint(world: World) -> None:
    """However slow a start is here, each attempt gets further before it is interrupted."""
    go = threading.Event()

    def script(container: FakeContainer) -> int:
        container.sleep_until(go)
        if world.job().lifecycle.count("Interrupted"):
            return 0
        container.write(CHECKPOINT, "1")
        return container.sleep_until(container.terminated)

    world.runner.script = script
    asked = {**spot_request(interruptions=1)["Environment"], "WINDTUNNEL_SPOT_AFTER": "checkpoint"}
    world.train(spot_request(Environment=asked))
    world.clock.advance(1000)
    assert world.secondary() == "Training"
    go.set()
    wait_for(lambda: "ckpt/job/step" in world.objects.keys("out"), "the checkpoint in S3")
    while world.secondary() == "Training":
        world.clock.advance(1)
        time.sleep(0.002)
    assert world.finish().lifecycle.status == "Completed"
    assert path(world)[:4] == AGAIN


def test_a_stop_during_an_interruption(world: World) -> None:
    """The job ends as Stopped, and does not start again."""
    world.runner.script = lambda container: container.sleep_until(threading.Event())
    world.train(spot_request())
    world.clock.advance(100)
    world.reach("Interrupted")
    world.service.stop("job")
    world.clock.advance(130)
    assert world.finish().lifecycle.secondary == "Stopped"
    assert path(world) == [*AGAIN, "Stopping", "Uploading", "Stopped"]


def test_the_runtime_counts_over_all_attempts(world: World) -> None:
    """As AWS defines MaxRuntimeInSeconds; the time between two attempts is not in it."""

    def script(container: FakeContainer) -> int:
        if not world.job().lifecycle.count("Interrupted"):
            pass_time(world, container, 100)
        container.sleep_until(container.terminated)
        world.clock.advance(50)
        return 0

    world.runner.script = script
    limits = {"MaxRuntimeInSeconds": 150, "MaxWaitTimeInSeconds": 7200}
    world.service.create(spot_request(interruptions=1, StoppingCondition=limits))
    wait_for(lambda: path(world)[-4:] == ["Interrupted", *ATTEMPT], "the second attempt")
    world.clock.advance(49)
    assert world.secondary() == "Training"
    world.clock.advance(1)
    assert world.finish().lifecycle.secondary == "MaxRuntimeExceeded"


def test_the_longest_wait(world: World) -> None:
    """MaxWaitTimeInSeconds counts from the creation, whatever the job does; what it made is stored."""

    def script(container: FakeContainer) -> int:
        container.sleep_until(container.terminated)
        container.write("/opt/ml/model/weights", "w")
        return 0

    world.runner.script = script
    limits = {"MaxRuntimeInSeconds": 100, "MaxWaitTimeInSeconds": 100}
    world.clock.advance(0.5)
    world.train(spot_request(interruptions=0, StoppingCondition=limits))
    world.clock.advance(100)
    job = world.finish()
    assert job.lifecycle.status == "Stopped"
    assert job.lifecycle.secondary in {"MaxRuntimeExceeded", "MaxWaitTimeExceeded"}
    assert job.model_artifact is not None


def test_a_crash_at_any_call(world: World) -> None:
    """Wherever the server dies, before a call has its effect or after it: as many interruptions as asked for, every
    line once, nothing lost or left.
    """
    world.runner.script = Steps(world)
    survived = False
    calls = 1
    while not survived:
        calls += 5
        name = f"job-{calls}"
        survived = world.outlives(Fuse(calls, after_effect=calls % 2 == 0), spot_request(name))
        life = world.finish(name).lifecycle
        assert life.status == "Completed", (calls, life)
        assert path(world, name) == [*AGAIN, *AGAIN, *ATTEMPT, "Uploading", "Completed"], calls
        assert streams(world, name) == [["from 0", "SIGTERM"], ["from 1", "SIGTERM"], ["from 2"]], calls
        assert world.objects.read("out", f"ckpt/{name}/step") == b"3", calls
        assert world.job(name).model_artifact == f"s3://out/models/{name}/output/model.tar.gz"
        counted = json.loads(world.objects.read("out", f"models/{name}/windtunnel/counters.json"))
        assert counted["other"]["steps"] == 3, calls
        world.service.shutdown()
    assert calls > 60


@given(st.integers(0, 2**31), st.integers(0, 20), st.floats(0.1, 1000))
def test_moments_follow_from_the_seed(seed: int, interruptions: int, mean_s: float) -> None:
    """The same ones again, around the mean; the first of many are those of few."""
    moments = spot.moments_s(SpotTerms(interruptions, seed, mean_s, 0.7))
    assert moments == spot.moments_s(SpotTerms(interruptions, seed, mean_s, 0.7))
    assert len(moments) == interruptions
    assert all(0.5 * mean_s <= moment <= 1.5 * mean_s for moment in moments)
    assert list(moments) == list(spot.moments_s(SpotTerms(interruptions + 1, seed, mean_s, 0.7)))[:-1]


def test_what_the_environment_may_ask(world: World) -> None:
    """The backend's settings hold for what the job does not say; nonsense is refused by name."""
    config = world.config
    accepted = spot_request(Environment={"WINDTUNNEL_SPOT_SEED": "9"})
    terms = spot.terms(accepted, config)
    assert terms == replace(config.spot, seed=9)
    assert spot.terms(request(Environment={"WINDTUNNEL_SPOT_SEED": "x"}), config) is None
    for name in ("WINDTUNNEL_SPOT_SEED", "WINDTUNNEL_SPOT_INTERRUPTIONS", "WINDTUNNEL_SPOT_MEAN_SECONDS"):
        for value in ("x", "-1", "nan", "1e12", "2.5" if "MEAN" not in name else "inf"):
            with pytest.raises(ValidationFailed, match=f"Environment: {name} is"):
                spot.terms(spot_request(Environment={name: value}), config)
    with pytest.raises(
        ValidationFailed, match="WINDTUNNEL_SPOT_AFTER is 'end'; it must be start or checkpoint"
    ):
        spot.terms(spot_request(Environment={"WINDTUNNEL_SPOT_AFTER": "end"}), config)
    asked = {"WINDTUNNEL_SPOT_AFTER": "checkpoint", "WINDTUNNEL_SPOT_INTERRUPTIONS": "1"}
    with pytest.raises(ValidationFailed, match="the job has no CheckpointConfig"):
        world.service.create(spot_request(Environment=asked, CheckpointConfig=None))
