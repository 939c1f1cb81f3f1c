"""What a running job's cores do, as an object beside its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.objects import FakeObjects
from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World, wait_for
from tests.unit.service.samples import config, job, request
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.observed.live_usage import SCHEMA, LiveUsage

KEY = "models/job/windtunnel/usage.json"
CORE = {"schema": SCHEMA, "cores": [0], "pid": 7, "counts": {"steps": 3}, "latencies": [[1.0, 0.5]]}


@pytest.fixture
def folders(tmp_path: Path) -> JobPaths:
    folders = JobPaths(tmp_path / "jobs" / "job")
    for host in ("algo-1", "algo-2"):
        (folders.counters(host) / "cores").mkdir(parents=True)
    return folders


def stored(objects: FakeObjects) -> Any:
    return json.loads(objects.path("out", KEY).read_bytes())


def test_the_hosts_become_one_document_refreshed_at_most_once_a_second(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths
) -> None:
    """Only what has changed is written; single executions stay out of it."""
    two, clock = job(tmp_path, request(hosts=2)), FakeClock()
    usage = LiveUsage(objects, clock, config(tmp_path))
    usage.publish(two)
    assert objects.keys("out") == [], "nothing to tell, nothing stored"
    file = folders.counters("algo-2") / "cores" / "core-0.json"
    file.write_text(json.dumps(CORE))
    usage.publish(two)
    assert objects.keys("out") == [], "a second has not passed"
    clock.advance(1.1)
    usage.publish(two)
    document = stored(objects)
    assert (document["schema"], document["job"]) == (SCHEMA, "job")
    assert document["hosts"] == [
        {"host": "algo-1", "cores": []},
        {"host": "algo-2", "cores": [{key: CORE[key] for key in CORE if key != "latencies"}]},
    ]
    objects.delete("out", KEY)
    clock.advance(1.1)
    usage.publish(two)
    assert objects.keys("out") == [], "unchanged: not written again"
    usage.forget(two)
    usage.forget(two)


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": "other"}', "\0"])
def test_what_a_script_may_have_written_there_is_no_reason_to_fail(
    tmp_path: Path, objects: FakeObjects, folders: JobPaths, content: str
) -> None:
    """It is left out; and a link that leads out of the job's folder is not followed."""
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({**CORE, "secret": 1}))
    cores = folders.counters("algo-1") / "cores"
    (cores / "core-0.json").write_text(content)
    (cores / "core-1.json").symlink_to(secret)
    LiveUsage(objects, FakeClock(), config(tmp_path)).publish(job(tmp_path))
    assert stored(objects)["hosts"] == [{"host": "algo-1", "cores": []}]


def test_a_missing_bucket_is_no_reason_to_fail(tmp_path: Path, folders: JobPaths) -> None:
    """Somebody removed it while the job runs: the job shall learn of it at its upload."""
    (folders.counters("algo-1") / "cores" / "core-0.json").write_text(json.dumps(CORE))
    usage = LiveUsage(FakeObjects(tmp_path / "none"), FakeClock(), config(tmp_path))
    usage.publish(job(tmp_path))
    usage.forget(job(tmp_path))


def test_it_is_there_while_the_job_trains_and_gone_afterwards(world: World) -> None:
    """What `windtunnel top` reads; counters.json takes its place."""

    def script(container: FakeContainer) -> int:
        container.write("/opt/windtunnel/counters/cores/core-0.json", json.dumps(CORE))
        return container.sleep_until(container.terminated)

    world.runner.script = script
    world.service.create(request())
    wait_for(lambda: advanced(world), "the usage")
    world.runner.container("job").terminated.set()
    world.finish()
    assert KEY not in world.objects.keys("out")
    assert "models/job/windtunnel/counters.json" in world.objects.keys("out")


def advanced(world: World) -> bool:
    """Let a second pass; whether the usage is there."""
    world.clock.advance(1.1)
    return KEY in world.objects.keys("out")


def test_event_files_are_stored_one_by_one(world: World) -> None:
    """Where TensorBoardOutputConfig says, as SageMaker does; without one, beside the job's other output."""

    def script(container: FakeContainer) -> int:
        container.write("/opt/ml/output/tensorboard/script/events.1", "s")
        container.write("/opt/ml/output/tensorboard/neuron/algo-1/events.2", "n")
        return 0

    world.runner.script = script
    world.run(request())
    below = "models/job/tensorboard-output"
    assert {f"{below}/script/events.1", f"{below}/neuron/algo-1/events.2"} <= set(world.objects.keys("out"))
    world.run(request("other", TensorBoardOutputConfig={"S3OutputPath": "s3://data/boards"}))
    assert world.objects.keys("data") == [
        "boards/other/tensorboard-output/neuron/algo-1/events.2",
        "boards/other/tensorboard-output/script/events.1",
    ]


def test_event_files_of_a_running_job_are_its_own(world: World) -> None:
    """What is open is what it has written so far; what lies in its folder once it has ended may be another's."""

    def script(container: FakeContainer) -> int:
        for number in (1, 2):
            container.write(f"/opt/ml/output/tensorboard/run/events.{number}", str(number))
        container.path("/opt/ml/output/tensorboard/run/events.3").symlink_to("/etc/passwd")
        return container.sleep_until(container.terminated)

    world.runner.script = script
    world.service.create(request())
    wait_for(lambda: len(list(world.service.event_files("job"))) == 2)
    found = world.service.event_files("job")
    name, file = next(found)
    assert (name, file.read()) == ("run/events.1", b"1")
    world.service.stop("job")
    ended = world.finish()
    second = world.config.paths(ended.slot).tensorboard("algo-1") / "run" / "events.2"
    second.parent.mkdir(parents=True, exist_ok=True)
    second.write_text("of the next job in a warm pool")
    assert list(found) == []


def test_a_folder_of_ones_own_for_event_files(world: World) -> None:
    """TensorBoardOutputConfig.LocalPath: mounted, and named to the simulator."""

    def script(container: FakeContainer) -> int:
        container.write("/tmp/boards/events.1", "s")
        return 0

    world.runner.script = script
    config = {"S3OutputPath": "s3://data/boards", "LocalPath": "/tmp/boards/"}
    world.run(request(TensorBoardOutputConfig=config))
    assert world.runner.plans[0].containers[0].environment["WINDTUNNEL_TENSORBOARD_DIR"] == "/tmp/boards"
    assert world.objects.keys("data") == ["boards/job/tensorboard-output/events.1"]


def test_a_missing_bucket_for_event_files_is_said_before_the_training(world: World) -> None:
    """Not after it."""
    ended = world.run(request(TensorBoardOutputConfig={"S3OutputPath": "s3://nowhere/boards"}))
    assert "TensorBoardOutputConfig.S3OutputPath (s3://nowhere/boards) does not exist" in str(
        ended.lifecycle.failure_reason
    )
