"""The API's view of training jobs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from tests.fakes.clock import START
from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World, wait_for
from tests.unit.service.samples import request
from windtunnel_local.service.ground.errors import (
    JobInUse,
    JobNotFound,
    RunnerError,
    ValidationFailed,
)
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.supervisor import Supervisor
from windtunnel_local.service.training_jobs import TrainingJobService


def run_on(world: World) -> None:
    world.runner.script = lambda container: container.sleep_until(container.terminated)


def test_describe_while_it_runs(world: World) -> None:
    """What is not known yet is left out; defaults that AWS fills in are there."""
    run_on(world)
    world.train(request(StoppingCondition=None))
    told = world.service.describe("job")
    assert told["TrainingJobStatus"] == "InProgress"
    assert told["StoppingCondition"] == {"MaxRuntimeInSeconds": 86400}
    assert told["EnableManagedSpotTraining"] is False
    assert told["TrainingStartTime"] == START
    assert told["SecondaryStatusTransitions"][0]["EndTime"] == START
    assert "EndTime" not in told["SecondaryStatusTransitions"][-1]
    for later in (
        "TrainingEndTime",
        "BillableTimeInSeconds",
        "ModelArtifacts",
        "FinalMetricDataList",
        "Tags",
    ):
        assert later not in told


def test_an_invalid_request_leaves_nothing(world: World) -> None:
    """Validation comes before anything starts."""
    with pytest.raises(ValidationFailed):
        world.service.create(request(StoppingCondition={"MaxRuntimeInSeconds": 0}))
    with pytest.raises(JobNotFound, match="Requested resource not found"):
        world.service.describe("job")


def test_keys_go_to_one_job_and_end_with_it(world: World) -> None:
    """Not with its name: another job may have that later. A job whose code asks for none gets none."""
    issued: list[str] = []

    def keys(job: Job, _until: datetime) -> Mapping[str, str]:
        issued.append(job.identity)
        assert world.service.goes_on(job.identity)
        return {"AWS_ACCESS_KEY_ID": "of the job"}

    world.service = TrainingJobService(
        Ports(world.store, world.runner, world.objects, world.clock, world.config, keys)
    )
    world.services.append(world.service)
    world.run(request("other"))
    assert issued == []
    for _ in range(2):
        world.run(request(Environment={"WINDTUNNEL_AWS_IN_JOBS": "1"}))
        assert not any(map(world.service.goes_on, issued))
        world.service.delete("job")
        world.clock.advance(1)
    assert len(set(issued)) == 2


def test_a_late_deletion_leaves_the_next_job_of_the_name(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clients delete a job at once, and one of them creates it again before the other has come to it."""
    world.run(request())

    def overtaken(_: Supervisor, name: str) -> bool:
        monkeypatch.undo()
        world.service.delete(name)
        world.clock.advance(1)
        world.service.create(request())
        return True

    run_on(world)
    monkeypatch.setattr(Supervisor, "await_clean_up", overtaken)
    with pytest.raises(JobNotFound):
        world.service.delete("job")
    world.reach("Training")


def test_containers_that_stay_are_not_the_next_job_s(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine does not remove a job's containers; a new job of its name runs in some of its own."""
    removed = world.runner.remove

    def refuses(slot: str) -> None:
        if slot == "job":
            raise RunnerError("removal is in progress")
        removed(slot)

    monkeypatch.setattr(world.runner, "remove", refuses)
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.finished and not world.service.busy())
    world.service.delete("job")

    def another(container: FakeContainer) -> int:
        container.print("another")
        return 3

    world.runner.script = another
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.finished and not world.service.busy())
    assert world.lines() == ["another"]
    assert world.job().lifecycle.status == "Failed"


def test_what_a_status_does_not_allow(world: World) -> None:
    """In AWS's words, which its SDKs look for."""
    released = threading.Event()
    world.runner.script = lambda container: container.sleep_until(released)
    world.train(request())
    with pytest.raises(
        JobInUse, match=r"in status InProgress\. Only a job that is Completed, Failed or Stopped"
    ):
        world.service.delete("job")
    world.service.stop("job")
    world.service.stop("job")
    released.set()
    world.finish()
    with pytest.raises(ValidationFailed, match=r"rejected because the training job is in status Stopped\."):
        world.service.stop("job")
    for call in (world.service.stop, world.service.delete, world.service.describe):
        with pytest.raises(JobNotFound):
            call("none")


def test_tags(world: World) -> None:
    """Given with the job or later; at most 50."""
    arn = world.service.create(request(Tags=[{"Key": "b", "Value": "1"}]))
    assert "Tags" not in world.job().request
    assert world.service.add_tags(arn, [{"Key": "b", "Value": "3"}, {"Key": "a", "Value": "2"}]) == [
        {"Key": "a", "Value": "2"},
        {"Key": "b", "Value": "3"},
    ]
    world.service.delete_tags(arn, ["b", "unknown"])
    assert world.service.list_tags(arn) == [{"Key": "a", "Value": "2"}]
    with pytest.raises(ValidationFailed, match="at most 50"):
        world.service.add_tags(arn, [{"Key": f"k{i}", "Value": ""} for i in range(50)])
    for foreign in (arn + "x", arn.replace("us-east-1", "eu-west-1"), "job"):
        with pytest.raises(JobNotFound):
            world.service.list_tags(foreign)
    world.finish()


def test_tags_that_are_added_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than fifty come together, whoever was asked first."""
    arn = world.service.create(request())
    looked, both, refused = world.store.tags, threading.Event(), []

    def slowly(arn: str) -> Mapping[str, str]:
        found = looked(arn)
        both.wait(0.2)  # so that another looks before this one adds
        return found

    def add(first: int) -> None:
        try:
            world.service.add_tags(arn, [{"Key": f"k{first + i}", "Value": ""} for i in range(30)])
        except ValidationFailed as error:
            refused.append(str(error))

    monkeypatch.setattr(world.store, "tags", slowly)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(add, (0, 30)))
    assert refused == ["60 tags were given; a resource has at most 50."]
    assert len(world.service.list_tags(arn)) == 30
