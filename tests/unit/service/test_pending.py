"""Jobs that wait for room on this machine."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World, wait_for
from tests.unit.service.samples import request

NAMES = ("first", "second", "third")
CAPACITY = {"MaxRuntimeInSeconds": 60, "MaxPendingTimeInSeconds": 7200}


@pytest.fixture
def narrow(world: World) -> World:
    """A backend with room for one job, whose jobs run until they are told to end."""
    world.service.shutdown()
    world.config = replace(world.config, max_cores=2)
    world.runner.script = lambda container: container.sleep_until(container.terminated)
    world.serve()
    return world


def create(world: World, *names: str, **members: Any) -> None:
    for name in names:
        world.service.create(request(name, **members))
        world.clock.advance(1)


def let_end(world: World, name: str) -> None:
    """The script of a running job ends by itself."""
    world.reach("Training", name)
    world.runner.container(name).terminated.set()
    wait_for(lambda: world.job(name).lifecycle.finished, f"the end of {name}")


def statuses(world: World) -> list[str]:
    return [world.secondary(name) for name in NAMES]


def test_jobs_wait_for_their_turn(narrow: World) -> None:
    """Pending, shown by Describe and List with what they wait for; then in the order of their creation."""
    create(narrow, *NAMES)
    wait_for(lambda: statuses(narrow) == ["Training", "Pending", "Pending"])
    said = narrow.service.describe("third")["SecondaryStatusTransitions"][-1]
    assert said["Status"] == "Pending"
    assert said["StatusMessage"].startswith("Training job waiting for capacity: it needs 2 cores and 3 GiB")
    wait_for(
        lambda: (
            narrow.job("third").lifecycle.transitions[-1].message.endswith("1 (first), waiting before it: 1")
        )
    )
    let_end(narrow, "first")
    wait_for(lambda: statuses(narrow) == ["Completed", "Training", "Pending"])
    let_end(narrow, "second")
    let_end(narrow, "third")
    life = narrow.finish("third").lifecycle
    assert [t.status for t in life.transitions] == [
        *["Starting", "Pending", "Downloading", "Training", "Uploading", "Completed"]
    ]
    assert life.transitions[1].message == "Preparing the instances for training"
    assert narrow.service.describe("third")["BillableTimeInSeconds"] == 1, "waiting costs nothing"


def test_the_order_survives_a_crash(narrow: World) -> None:
    """The next server knows who runs before it lets anybody in, and who came first."""
    create(narrow, *NAMES)
    wait_for(lambda: statuses(narrow) == ["Training", "Pending", "Pending"])
    narrow.crash_and_serve()
    create(narrow, "last")
    wait_for(lambda: narrow.secondary("last") == "Pending")
    assert statuses(narrow) == ["Training", "Pending", "Pending"]
    for name in (*NAMES, "last"):
        let_end(narrow, name)
    narrow.finish("last")
    begun = [narrow.job(name).lifecycle.training_start for name in (*NAMES, "last")]
    assert begun == sorted(begun, key=str)
    assert len(narrow.runner.plans) == 4


def test_a_stop_while_pending(narrow: World) -> None:
    """At once and free of charge; the next in line moves up."""
    create(narrow, *NAMES)
    wait_for(lambda: statuses(narrow) == ["Training", "Pending", "Pending"])
    narrow.service.stop("second")
    wait_for(lambda: narrow.secondary("second") == "Stopped")
    assert [t.status for t in narrow.job("second").lifecycle.transitions] == [
        *["Starting", "Pending", "Stopping", "Stopped"]
    ]
    assert "BillableTimeInSeconds" not in narrow.service.describe("second")
    let_end(narrow, "first")
    let_end(narrow, "third")
    narrow.finish("third")


def test_the_longest_time_pending(narrow: World) -> None:
    """MaxPendingTimeInSeconds ends the job as Stopped; the time that it runs is not pending."""
    create(narrow, "first", "second", StoppingCondition=CAPACITY | {"MaxRuntimeInSeconds": 86400})
    wait_for(lambda: narrow.secondary("second") == "Pending")
    narrow.clock.advance(7100)
    assert narrow.secondary("second") == "Pending"
    narrow.clock.advance(101)
    wait_for(lambda: narrow.job("second").lifecycle.finished)
    life = narrow.job("second").lifecycle
    assert (life.status, life.secondary) == ("Stopped", "Stopped")
    assert (
        life.transitions[-1].message == "Training job pending time exceeded MaxPendingTimeInSeconds provided"
    )
    let_end(narrow, "first")
    narrow.finish("first")


def test_a_spot_job_that_never_gets_capacity(narrow: World) -> None:
    """MaxWaitTimeInSeconds holds in the line too."""
    create(narrow, "first")
    limits = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90}
    create(narrow, "second", EnableManagedSpotTraining=True, StoppingCondition=limits)
    wait_for(lambda: narrow.secondary("second") == "Pending")
    narrow.clock.advance(90)
    wait_for(lambda: narrow.secondary("second") == "MaxWaitTimeExceeded")
    let_end(narrow, "first")
    narrow.finish("first")


def test_a_job_that_is_larger_than_the_machine_runs_alone(narrow: World) -> None:
    """One job always fits; and nothing overtakes it while it waits."""
    create(narrow, "first")
    create(narrow, "second", ResourceConfig={"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1})
    create(narrow, "third")
    wait_for(lambda: statuses(narrow) == ["Training", "Pending", "Pending"])
    let_end(narrow, "first")
    wait_for(lambda: statuses(narrow) == ["Completed", "Training", "Pending"])
    for name in ("second", "third"):
        let_end(narrow, name)
    narrow.finish("third")


def test_an_interrupted_job_keeps_its_room(narrow: World) -> None:
    """Between two attempts nobody takes it: the order is that of the creation."""
    spot = {"WINDTUNNEL_SPOT_INTERRUPTIONS": "1", "WINDTUNNEL_SPOT_MEAN_SECONDS": "10"}

    def script(container: FakeContainer) -> int:
        return container.sleep_until(container.terminated)

    narrow.runner.script = script
    limits = {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 600}
    create(narrow, "first", EnableManagedSpotTraining=True, StoppingCondition=limits, Environment=spot)
    create(narrow, "second")
    wait_for(lambda: [narrow.secondary(n) for n in NAMES[:2]] == ["Training", "Pending"])
    narrow.clock.advance(20)
    wait_for(lambda: narrow.job("first").lifecycle.count("Training") == 2)
    assert narrow.secondary("second") == "Pending"
    for name in NAMES[:2]:
        let_end(narrow, name)
    narrow.finish("second")


def test_small_jobs_run_side_by_side(world: World) -> None:
    """As many as fit."""
    world.service.shutdown()
    world.config = replace(world.config, max_cores=8, max_memory_bytes=21 * 2**30)
    go = threading.Event()
    world.runner.script = lambda container: container.sleep_until(go)
    world.serve()
    names = [f"job-{n}" for n in range(5)]
    create(world, *names)
    wait_for(lambda: [world.secondary(n) for n in names] == ["Training"] * 4 + ["Pending"])
    go.set()
    for name in names:
        wait_for(lambda n=name: world.job(n).lifecycle.finished)
    assert [world.job(name).lifecycle.status for name in names] == ["Completed"] * 5


def test_a_runner_without_a_machine_lets_its_jobs_wait(world: World) -> None:
    """Pending in the runner's words, not billed, also behind the next server; a stop ends the wait."""
    world.runner.crowded = "waits for a node"
    create(world, "first", "second")
    for name in ("first", "second"):
        wait_for(lambda name=name: world.job(name).lifecycle.transitions[-1].message == "waits for a node")
        assert world.secondary(name) == "Pending"
    world.service.stop("second")
    wait_for(lambda: world.secondary("second") == "Stopped")
    world.crash_and_serve()
    world.clock.advance(100)
    assert world.secondary("first") == "Pending"
    world.runner.crowded = None
    assert world.finish("first").lifecycle.status == "Completed"
    assert world.service.describe("first")["BillableTimeInSeconds"] == 1


def test_a_job_that_has_ended_holds_nobody_up(narrow: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its containers are not removed yet: a job that comes then has its room."""
    removed = threading.Event()
    remove = narrow.runner.remove

    def slowly(job: str) -> None:
        removed.wait(10)
        remove(job)

    monkeypatch.setattr(narrow.runner, "remove", slowly)
    create(narrow, "first")
    let_end(narrow, "first")
    create(narrow, "second")
    narrow.reach("Training", "second")
    removed.set()
    let_end(narrow, "second")
    assert not narrow.job("second").lifecycle.count("Pending")


def test_a_stop_in_the_line_is_not_about_what_is_left_of_another(narrow: World) -> None:
    """A deleted job of its name, whose containers could not be removed, has no part in its end."""
    create(narrow, "second")
    let_end(narrow, "second")
    narrow.finish("second")
    narrow.service.delete("second")
    create(narrow, "first")
    narrow.reach("Training", "first")
    narrow.runner.start(narrow.runner.plans[0])
    create(narrow, "second")
    narrow.reach("Pending", "second")
    narrow.service.stop("second")
    wait_for(lambda: narrow.job("second").lifecycle.finished, "the end of second")
    assert narrow.job("second").lifecycle.status == "Stopped"
    let_end(narrow, "first")


def test_a_job_is_accepted_while_the_engine_does_not_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one waits for it just then."""
    asked, answers = threading.Event(), threading.Event()
    jobs = world.runner.jobs

    def slowly() -> set[str]:
        asked.set()
        answered.append(answers.wait(10))
        return jobs()

    answered: list[bool] = []
    monkeypatch.setattr(world.runner, "jobs", slowly)
    create(world, "first")
    assert asked.wait(10)
    create(world, "second")
    answers.set()
    for name in ("first", "second"):
        wait_for(lambda n=name: world.job(n).lifecycle.finished, f"the end of {name}")
    assert all(answered)
