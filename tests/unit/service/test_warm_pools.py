"""Warm pools: containers that outlive their job, who gets them next, and how they end."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.crash import Crash, Fuse
from tests.fakes.runner import FakeContainer, Image
from tests.unit.service.conftest import World, succeed, wait_for
from tests.unit.service.samples import channel, request
from windtunnel_local.service.ground.containers import ContainerState
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.job import Job, WarmPool

CACHE = "/opt/ml/sagemaker/warmpoolcache"


def warm(name: str, keep_s: int = 600, hosts: int = 1, **members: Any) -> dict[str, Any]:
    """A job that asks for its containers to be kept."""
    resources = {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": hosts, "VolumeSizeInGB": 30}
    if keep_s:
        resources["KeepAlivePeriodInSeconds"] = keep_s
    return request(name, **{"ResourceConfig": resources, **members})


def ended(world: World, name: str) -> Job:
    """Wait until the job has ended and its pool, if it has one, can be taken over."""

    def settled() -> bool:
        job = world.job(name)
        pool = job.warm_pool
        return job.lifecycle.finished and (pool is None or pool.ready or pool.status != "Available")

    wait_for(settled, f"the end of {name}", pause_s=0.01)
    return world.job(name)


def run(world: World, name: str, **members: Any) -> Job:
    """One job from its request to its end."""
    world.service.create(warm(name, **members))
    return ended(world, name)


def pool(world: World, name: str) -> WarmPool:
    """The pool of a job that asked for one."""
    found = world.job(name).warm_pool
    assert found is not None
    return found


def wait_for_status(world: World, name: str, status: str) -> WarmPool:
    """Wait until the pool stands so."""
    wait_for(lambda: pool(world, name).status == status, f"the pool of {name} being {status}")
    return pool(world, name)


def described(world: World, name: str) -> Any:
    """WarmPoolStatus as DescribeTrainingJob shows it."""
    return world.service.describe(name).get("WarmPoolStatus")


def test_a_matching_job_runs_in_the_kept_container(world: World) -> None:
    """Same container, nothing of the first job but the cache, a log of its own, AWS's states and bill."""
    seen: list[dict[str, Any]] = []

    def script(container: FakeContainer) -> int:
        ml = container.path("/opt/ml")
        names = {str(path.relative_to(ml)) for path in ml.rglob("*") if path.is_file()}
        home = [path.name for path in container.path("/opt/windtunnel/home").iterdir()]
        seen.append(
            {"id": container.identity, "files": names, "home": home, "env": container.plan.environment}
        )
        container.print(f"I am {container.plan.environment['TRAINING_JOB_NAME']}")
        container.write("/opt/ml/model/weights", "w")
        container.write("/opt/ml/code/left.py", "x")
        container.write("/opt/windtunnel/home/.bash_history", "x")
        container.write(f"{CACHE}/pip/wheel", "x")
        return 0

    world.runner.script = script
    world.objects.put_text("data", "train/a.csv", "a")
    first = run(
        world, "one", InputDataConfig=[channel("train", "s3://data/train")], Environment={"SECRET": "1"}
    )
    assert first.lifecycle.status == "Completed"
    assert described(world, "one") == {"Status": "Available"}
    world.clock.advance(7.5)
    second = run(world, "two")
    assert second.lifecycle.status == "Completed"
    before, after = seen
    assert after["id"] == before["id"], "it is the same container"
    config = {
        f"input/config/{name}.json" for name in ("hyperparameters", "resourceconfig", "inputdataconfig")
    }
    assert before["files"] == config | {"input/data/train/a.csv"}
    assert after["files"] == config | {"sagemaker/warmpoolcache/pip/wheel"}
    assert after["home"] == []
    assert "SECRET" not in after["env"]
    assert after["env"]["SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY"] == CACHE
    assert (world.lines("one"), world.lines("two")) == (["I am one"], ["I am two"])
    assert described(world, "one") == {
        "Status": "Reused",
        "ResourceRetainedBillableTimeInSeconds": 8,
        "ReusedByJob": "two",
    }
    assert described(world, "two") == {"Status": "Available"}


def test_a_running_job_has_its_pool_in_use(world: World) -> None:
    """Also the first one."""
    world.runner.script = lambda container: container.sleep_until(container.terminated)
    world.train(warm("one"))
    assert described(world, "one") == {"Status": "InUse"}
    world.service.create(request("plain"))
    assert described(world, "plain") is None


def test_a_pool_ends_when_its_period_is_over(world: World) -> None:
    """Its containers and its folder go; it is billed for its period and no more."""
    run(world, "one", keep_s=60)
    assert world.service.busy(), "a server that left would leave nobody to end the pool"
    world.clock.advance(61.5)
    ended_pool = wait_for_status(world, "one", "Terminated")
    assert ended_pool.retained_billable_s == 60
    wait_for(lambda: not world.runner.jobs() and not (world.config.jobs / "one").exists())
    wait_for(lambda: not world.service.busy())
    run(world, "two", keep_s=0)
    assert world.job("two").slot == "two"


def test_the_containers_know_when_to_end_by_themselves(world: World) -> None:
    """A killed server is no reason for them to stay for ever, and an update reaches them."""
    run(world, "one", keep_s=60)
    done = world.job("one").lifecycle.training_end
    assert done is not None
    assert (world.runner.retained["one"] - done).total_seconds() == 60
    resources = {"KeepAlivePeriodInSeconds": 100}
    world.service.update({"TrainingJobName": "one", "ResourceConfig": resources})
    wait_for(lambda: (world.runner.retained["one"] - done).total_seconds() == 100)
    world.clock.advance(70)
    assert run(world, "two").slot == "one", "it was still there"


def test_an_update_to_zero_ends_the_pool(world: World) -> None:
    """As AWS's users release their clusters."""
    run(world, "one")
    world.clock.advance(3)
    world.service.update({"TrainingJobName": "one", "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}})
    wait_for_status(world, "one", "Terminated")
    wait_for(lambda: not world.runner.jobs())
    assert described(world, "one")["Status"] == "Terminated"


def test_a_job_that_asks_for_none_is_the_last_in_a_pool(world: World) -> None:
    """It starts warm, and the pool spins down behind it."""
    run(world, "one")
    last = run(world, "two", keep_s=0)
    assert last.slot == "one"
    assert described(world, "two") == {"Status": "Terminated", "ResourceRetainedBillableTimeInSeconds": 0}
    wait_for(lambda: not world.runner.jobs() and not (world.config.jobs / "one").exists())


@pytest.mark.parametrize(
    "members",
    [
        {"RoleArn": "arn:aws:iam::000000000000:role/other"},
        {"EnableNetworkIsolation": True},
        {"EnableInterContainerTrafficEncryption": True},
        {"hosts": 2},
        {
            "ResourceConfig": {
                "InstanceType": "ml.trn1.2xlarge",
                "InstanceCount": 1,
                "VolumeSizeInGB": 31,
                "KeepAlivePeriodInSeconds": 600,
            }
        },
        {"CheckpointConfig": {"S3Uri": "s3://out/c", "LocalPath": "/elsewhere"}},
    ],
)
def test_a_job_that_differs_starts_cold(world: World, members: dict[str, Any]) -> None:
    """In one of AWS's matching members, or in what a running container cannot change."""
    run(world, "one")
    assert run(world, "two", **members).slot == "two"
    assert pool(world, "one").status == "Available", "the pool waits for its own kind"


def test_two_jobs_at_once(world: World) -> None:
    """One gets the pool, the other starts cold; both end well."""
    run(world, "one")
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go)
    for name in ("two", "three"):
        world.service.create(warm(name))
    for name in ("two", "three"):
        world.reach("Training", name)
    assert sorted(world.job(name).slot == "one" for name in ("two", "three")) == [False, True]
    go.set()
    for name in ("two", "three"):
        assert ended(world, name).lifecycle.status == "Completed"


@pytest.mark.parametrize("failure", [1, 0])
def test_stopped_and_failed_jobs_leave_their_pool(world: World, failure: int) -> None:
    """AWS keeps the cluster when a job is stopped, or fails by its own fault."""

    def script(container: FakeContainer) -> int:
        if not failure:
            container.sleep_until(container.terminated)
        return failure

    world.runner.script = script
    world.service.create(warm("one"))
    if not failure:
        world.reach("Training", "one")
        world.service.stop("one")
    assert ended(world, "one").lifecycle.status == ("Failed" if failure else "Stopped")
    assert pool(world, "one").status == "Available"
    world.runner.script = succeed
    assert run(world, "two").slot == "one"


def test_a_fault_of_the_platform_leaves_no_pool(world: World) -> None:
    """Who knows what state the containers are in."""
    world.runner.script = lambda container: container.sleep_until(container.terminated)
    world.train(warm("one"))
    world.runner.lose("one")
    assert ended(world, "one").lifecycle.status == "Failed"
    assert pool(world, "one").status == "Terminated"


def test_a_container_that_dies_while_idle(world: World) -> None:
    """The pool is Terminated, and the next job starts cold."""
    run(world, "one")
    world.runner.lose("one")
    wait_for_status(world, "one", "Terminated")
    second = run(world, "two")
    assert (second.slot, second.lifecycle.status) == ("two", "Completed")


def test_a_container_that_dies_when_it_was_just_taken_over(world: World) -> None:
    """Between the claim and the start: the job gets containers of its own."""
    run(world, "one")
    pause = threading.Event()
    world.runner.images["windtunnel-training"] = Image(pause=pause)
    world.service.create(warm("two"))
    wait_for(lambda: world.job("two").slot == "one")
    world.runner.lose("one")
    pause.set()
    assert ended(world, "two").lifecycle.status == "Completed"
    assert world.job("two").slot == "two"
    assert described(world, "one")["ReusedByJob"] == "two"


def test_a_name_may_come_again_while_its_slot_is_in_use(world: World) -> None:
    """A job may be deleted, and created again, while another runs in the containers named for it."""
    run(world, "one")
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go)
    world.train(warm("two"))
    world.service.delete("one")
    world.train(warm("one"))
    assert world.job("two").slot == "one"
    assert world.job("one").slot != "one"
    go.set()
    assert {ended(world, name).lifecycle.status for name in ("one", "two")} == {"Completed"}


def test_a_name_may_come_again_while_its_slot_is_idle(world: World) -> None:
    """The second job of the name starts cold: in the kept containers it would be taken for their first job."""
    run(world, "one")
    run(world, "two")
    assert world.job("two").slot == "one"
    wait_for(lambda: pool(world, "two").ready, "the pool of two")
    world.service.delete("one")
    assert run(world, "one").lifecycle.status == "Completed"
    assert world.job("one").slot.startswith("one.")
    assert not pool(world, "one").begins
    assert pool(world, "two").status == "Available"


def test_a_job_that_ends_in_the_line_leaves_another_s_containers_alone(world: World) -> None:
    """Those that are named as it is, in which another job runs."""
    world.config = replace(world.config, max_cores=2)
    world.serve()
    run(world, "one")
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go)
    world.train(warm("two"))
    world.service.delete("one")
    world.service.create(warm("one"))
    world.reach("Pending", "one")
    world.service.stop("one")
    assert ended(world, "one").lifecycle.status == "Stopped"
    world.service.delete("one")  # once it is cleaned up
    assert world.runner.state("one", "algo-1").status == "running"
    go.set()
    assert ended(world, "two").lifecycle.status == "Completed"


@pytest.mark.parametrize("by", ["a pool's end", "another job's"])
def test_a_name_may_come_again_while_its_slot_is_emptied(
    world: World, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """What was made there is removed, and not what the second job of the name makes."""
    run(world, "one")
    remove, emptied, go_on = world.runner.remove, threading.Event(), threading.Event()

    def slowly(slot: str) -> None:
        remove(slot)
        if slot == "one":
            emptied.set()
            go_on.wait(20)

    monkeypatch.setattr(world.runner, "remove", slowly)
    if by == "a pool's end":
        ends = {"TrainingJobName": "one", "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
        world.service.update(ends)
    else:
        world.service.create(warm("two", keep_s=0))
    assert emptied.wait(20)
    world.service.delete("one")
    end = threading.Event()
    world.runner.script = lambda container: container.sleep_until(end)
    world.train(request("one"))
    go_on.set()
    wait_for(lambda: not (world.config.jobs / "one").exists(), "the first job's folder being removed")
    assert world.config.paths(world.job("one").slot).root.exists()
    end.set()
    wait_for(lambda: world.job("one").lifecycle.status == "Completed", "the end of the second job")


def test_a_server_that_leaves_lets_no_job_in_half(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that waits for a pool to become ready has chosen no containers yet: the next server does that."""
    waits = threading.Event()
    retain = world.runner.retain

    def slow(*arguments: Any) -> bool:
        waits.wait(20)
        return retain(*arguments)

    monkeypatch.setattr(world.runner, "retain", slow)
    world.service.create(warm("one"))
    wait_for_status(world, "one", "Available")
    world.service.create(warm("two"))
    time.sleep(0.1)
    leaving = threading.Thread(target=world.service.shutdown)
    leaving.start()
    time.sleep(0.2)
    assert world.secondary("two") == "Starting"
    waits.set()
    leaving.join()


def test_a_job_that_comes_as_the_one_before_it_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the pool as soon as that is recorded, before anybody makes it ready."""
    update = world.store.update_job

    def recorded(job: Job) -> None:
        update(job)
        if job.warm_pool is not None and job.warm_pool.status == "Available":
            monkeypatch.undo()
            world.service.create(warm("two"))
            time.sleep(0.1)

    monkeypatch.setattr(world.store, "update_job", recorded)
    run(world, "one")
    assert ended(world, "two").slot == "one"


def test_a_pool_is_left_alone_once_a_job_has_taken_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a server that has just found it, and is about to tell its containers until when they are kept."""
    go, taken = threading.Event(), threading.Event()
    told: list[bool] = []
    state, retain = world.runner.state, world.runner.retain

    def looked_at(job: str, host: str) -> ContainerState:
        found = state(job, host)
        if threading.current_thread().name == "warm pools" and not taken.is_set():
            taken.set()
            world.runner.script = lambda container: container.sleep_until(go)
            world.service.create(warm("two"))
            wait_for(lambda: world.job("two").slot == "one")
        return found

    def kept(*arguments: Any) -> bool:
        told.append(go.is_set())
        return retain(*arguments)

    run(world, "one", keep_s=100)
    monkeypatch.setattr(world.runner, "state", looked_at)
    monkeypatch.setattr(world.runner, "retain", kept)
    world.crash_and_serve()
    wait_for(lambda: world.store.get_job("two") is not None)
    world.reach("Training", "two")
    wait_for(lambda: "warm pools" not in {thread.name for thread in threading.enumerate()})
    go.set()
    assert ended(world, "two").lifecycle.status == "Completed"
    assert told and all(told), "only when the second job had ended"


def test_no_pool_is_swept_up_while_a_job_takes_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new server removes what belongs to no job and no pool: not what goes from one to the other meanwhile."""
    died, looked = threading.Event(), threading.Event()
    retain, unfinished_jobs = world.runner.retain, world.store.unfinished_jobs

    def kept(*arguments: Any) -> bool:
        (looked if died.is_set() else died).wait(20)
        world.fuse.check()
        return retain(*arguments)

    def unfinished() -> Any:
        found = unfinished_jobs()
        if threading.current_thread().name == "sweep" and not looked.is_set():
            looked.set()
            until = time.monotonic() + 0.5
            while pool(world, "one").status != "Reused" and time.monotonic() < until:
                time.sleep(0.01)
        return found

    monkeypatch.setattr(world.runner, "retain", kept)
    world.service.create(warm("one"))
    wait_for_status(world, "one", "Available")
    world.service.create(warm("two"))
    wait_for(lambda: world.secondary("two") == "Starting")
    monkeypatch.setattr(world.store, "unfinished_jobs", unfinished)
    world.fuse.blown.set()
    died.set()
    world.crash_and_serve()
    assert ended(world, "two").lifecycle.status == "Completed"
    assert world.job("two").slot == "one"


def test_a_killed_server_s_pools_are_found_again(world: World) -> None:
    """Within their period they wait for the next job; one that is over is ended at the next start."""
    run(world, "one", keep_s=100)
    world.clock.advance(50)
    world.crash_and_serve()
    assert world.service.busy()
    assert run(world, "two", keep_s=100).slot == "one"
    world.fuse.blow()
    world.clock.advance(101)
    world.serve().resume()
    wait_for_status(world, "two", "Terminated")
    wait_for(lambda: not world.runner.jobs() and not world.service.busy())
    assert not list(world.config.jobs.glob("*"))


def test_a_server_that_is_told_to_leave_ends_its_pools(world: World) -> None:
    """Nobody is left who would."""
    run(world, "one")
    world.service.shutdown()
    assert pool(world, "one").status == "Terminated"
    assert not world.runner.jobs()


def test_idle_containers_make_room(world: World) -> None:
    """A job that does not match waits for no pool; one that matches needs no room beside it."""
    world.config = replace(world.config, max_cores=4)
    world.serve()
    run(world, "one", hosts=2)
    assert run(world, "two", hosts=2).slot == "one", "the pool takes all cores, and they are the job's"
    assert pool(world, "one").status == "Reused"
    world.service.create(request("other"))
    wait_for_status(world, "two", "Terminated")
    ended(world, "other")


@pytest.mark.parametrize(
    ("members", "named"),
    [
        (
            {
                "EnableManagedSpotTraining": True,
                "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
            },
            "EnableManagedSpotTraining",
        ),
        (
            {
                "ResourceConfig": {
                    "InstanceGroups": [
                        {"InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1, "InstanceGroupName": "g"}
                    ],
                    "VolumeSizeInGB": 30,
                    "KeepAlivePeriodInSeconds": 60,
                }
            },
            "InstanceGroups",
        ),
        ({"AlgorithmSpecification": {"TrainingImage": "mine:1", "TrainingInputMode": "File"}}, "mine:1"),
    ],
)
def test_what_does_not_go_with_warm_pools(world: World, members: dict[str, Any], named: str) -> None:
    """Refused when the job is created, by the names of both members."""
    with pytest.raises(ValidationFailed) as refused:
        world.service.create(warm("one", **members))
    assert "ResourceConfig.KeepAlivePeriodInSeconds" in str(refused.value)
    assert named in str(refused.value)


def test_a_runner_that_keeps_nothing(world: World) -> None:
    """It is named, instead of a pool that never comes."""
    world.runner.name, world.runner.keeps_containers = "process", False
    with pytest.raises(ValidationFailed, match="process runner"):
        world.service.create(warm("one"))


def test_a_crash_at_every_other_call(world: World) -> None:
    """Wherever the server dies while one job follows the other: both complete, every line is there once,
    a pool has one user, and nothing is left when the period is over.

    Before the call has its effect, or after it, in turn. What is left after one is what is left before the next.
    """

    def script(container: FakeContainer) -> int:
        container.print(f"{container.plan.environment['TRAINING_JOB_NAME']} says hello")
        container.write("/opt/ml/model/weights", "w")
        return 0

    world.runner.script = script
    survived, calls, warm_starts = False, 0, 0
    while not survived:
        calls += 2
        names = [f"a{calls}", f"b{calls}"]
        fuse = Fuse(calls, after_effect=calls % 4 == 0)
        dying = world.serve(fuse)
        try:
            for name in names:
                dying.create(warm(name, 50))
                wait_for(lambda n=name, f=fuse: f.blown.is_set() or bool(_settled(world, n)))
        except Crash:
            pass
        survived = not fuse.blown.is_set()
        heir = world.crash_and_serve()
        for name in names:
            if world.store.get_job(name) is None:
                heir.create(warm(name, 50))
            assert ended(world, name).lifecycle.status == "Completed", (calls, name)
            assert world.lines(name) == [f"{name} says hello"], (calls, name)
        first, second = (pool(world, name) for name in names)
        warm_starts += world.job(names[1]).slot == names[0]
        taken = first.reused_by == names[1]
        assert first.status == ("Reused" if taken else "Terminated"), calls
        assert taken or world.job(names[1]).slot == names[1], calls
        assert second.status == "Available", calls
        world.clock.advance(51)
        wait_for_status(world, names[1], "Terminated")
        wait_for(lambda: not world.runner.jobs() and not list(world.config.jobs.glob("*")), "the end of all")
        heir.shutdown()
    assert calls > 30
    assert warm_starts > calls / 4


def _settled(world: World, name: str) -> bool:
    job = world.store.get_job(name)
    return bool(job and job.lifecycle.finished and job.warm_pool and job.warm_pool.ready)
