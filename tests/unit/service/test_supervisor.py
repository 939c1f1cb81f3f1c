"""Jobs from start to end, with a fake engine."""

from __future__ import annotations

import errno
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from tests.fakes.runner import FakeContainer, Image
from tests.unit.service.conftest import World, wait_for
from tests.unit.service.samples import channel, request
from windtunnel_local.service.data import inputs
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import LogEvent, MetricValue, ObjectInfo
from windtunnel_local.service.observed import metric_collector
from windtunnel_local.service.running import clean_up

LINES = [f"line {i}" for i in range(10)]


def reason(world: World, name: str = "job") -> str:
    return str(world.service.describe(name)["FailureReason"])


def test_a_job_that_succeeds(world: World) -> None:
    """Model, output, counters, metrics, log and statuses, all there when the status says so."""

    def script(container: FakeContainer) -> int:
        assert container.path("/opt/ml/input/data/train/a.csv").read_text() == "data"
        settings = json.loads(container.path("/opt/ml/input/config/resourceconfig.json").read_text())
        container.print(f"on {settings['current_host']}")
        container.print("loss=0.5")
        container.write("/opt/ml/model/weights", "w")
        container.write("/opt/ml/output/data/plot", "p")
        container.write("/opt/ml/checkpoints/1", "c")
        container.write("/opt/windtunnel/counters/rank-0.jsonl", '{"kind":"start","world_size":2}\n')
        return 0

    world.runner.script = script
    world.objects.put_text("data", "train/a.csv", "data")
    accepted = request(
        InputDataConfig=[channel("train", "s3://data/train")], CheckpointConfig={"S3Uri": "s3://out/c"}
    )
    accepted["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": r"loss=(\S+)"}]
    arn = world.service.create(accepted)
    assert arn == "arn:aws:sagemaker:us-east-1:000000000000:training-job/job"
    world.finish()
    told = world.service.describe("job")
    assert (told["TrainingJobStatus"], told["SecondaryStatus"]) == ("Completed", "Completed")
    assert told["ModelArtifacts"] == {"S3ModelArtifacts": "s3://out/models/job/output/model.tar.gz"}
    assert told["FinalMetricDataList"][0]["Value"] == 0.5
    assert told["BillableTimeInSeconds"] == told["TrainingTimeInSeconds"] == 1
    assert told["ResourceConfig"] == accepted["ResourceConfig"]
    assert "FailureReason" not in told
    assert world.lines() == ["on algo-1", "loss=0.5"]
    assert world.objects.keys("out") == [
        "c/1",
        "models/job/output/model.tar.gz",
        "models/job/output/output.tar.gz",
        "models/job/windtunnel/counters.json",
    ]
    counters = json.loads(world.objects.read("out", "models/job/windtunnel/counters.json"))
    assert (counters["world_size"], counters["train"]) == (2, None)


@pytest.mark.parametrize(("code", "ends"), [(0, "Stopped"), (3, "Failed")])
def test_a_stop_ends_an_upload(world: World, code: int, ends: str) -> None:
    """However long it would go on; the model is not stored, the counters are."""

    def script(container: FakeContainer) -> int:
        container.write("/opt/ml/model/weights", "w")
        return code

    def endless(bucket: str, key: str, data: BinaryIO) -> ObjectInfo:
        while key.endswith("model.tar.gz"):
            data.read(1)
            time.sleep(0.001)
        return store(bucket, key, data)

    store, world.objects.put = world.objects.put, endless  # type: ignore[assignment, method-assign]
    world.runner.script = script
    world.service.create(request())
    world.reach("Uploading")
    assert world.service.describe("job")["TrainingJobStatus"] == "InProgress"
    world.service.stop("job")
    assert world.service.describe("job")["TrainingJobStatus"] in ("Stopping", ends)
    world.finish()
    told = world.service.describe("job")
    assert (told["TrainingJobStatus"], told["SecondaryStatus"]) == (ends, ends)
    assert "S3ModelArtifacts" not in told.get("ModelArtifacts", {})
    assert world.objects.keys("out") == ["models/job/windtunnel/counters.json"]


def test_hopeless_metrics_do_not_fail_the_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log says why they are missing."""

    def hopeless(*_: object) -> tuple[()]:
        raise metric_collector.MetricsUnavailable("the metrics loss are not known")

    monkeypatch.setattr(metric_collector.Scanner, "search", hopeless)
    asked = request()
    asked["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "((a+)+)b"}]
    assert world.run(asked).lifecycle.status == "Completed"
    assert world.lines() == ["hello", "Windtunnel: the metrics loss are not known"]
    assert "FinalMetricDataList" not in world.service.describe("job")


def test_an_expression_that_is_given_up_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not cost the job's other metrics."""

    def search(scanner: metric_collector.Scanner, events: Sequence[LogEvent]) -> list[MetricValue]:
        scanner.given_up = [("loss", "((a+)+)b")]
        return [MetricValue("fine", events[0].timestamp_ms, 1.0)]

    monkeypatch.setattr(metric_collector.Scanner, "search", search)
    asked = request()
    asked["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "loss", "Regex": "((a+)+)b"},
        {"Name": "fine", "Regex": r"fine=(\d)"},
    ]
    assert world.run(asked).lifecycle.status == "Completed"
    (words,) = [line for line in world.lines() if line.startswith("Windtunnel: ")]
    assert words.startswith("Windtunnel: the metric loss was given up: ")
    assert words.endswith("Given: ((a+)+)b")
    assert [m["MetricName"] for m in world.service.describe("job")["FinalMetricDataList"]] == ["fine"]


def test_a_removed_installation_costs_the_metrics_and_not_the_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment deleted under the running server must not fail a job that has trained."""
    monkeypatch.setattr(sys, "executable", "/removed/python")
    asked = request()
    asked["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*)"}]
    assert world.run(asked).lifecycle.status == "Completed"
    assert any("the metrics are not known" in line and "/removed/python" in line for line in world.lines())


@pytest.fixture
def full(world: World, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set: the disk of the record is full."""
    full = threading.Event()

    def fills(write: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            if full.is_set():
                raise StoreUnavailable("database or disk is full")
            write(*arguments)

        return call

    for name in ("update_job", "append_log"):
        monkeypatch.setattr(world.store, name, fills(getattr(world.store, name)))
    return full


def test_a_full_disk_loses_nothing(world: World, full: threading.Event) -> None:
    """The job waits until its lines and its status can be recorded; a stop is told why it is not."""
    ended = threading.Event()

    def script(container: FakeContainer) -> int:
        full.set()
        container.print("hello")
        container.write("/opt/ml/model/weights", "w")
        ended.set()
        return 0

    world.runner.script = script
    world.service.create(request())
    assert ended.wait(20)
    with pytest.raises(StoreUnavailable, match="disk is full"):
        world.service.stop("job")
    assert world.service.busy()
    full.clear()
    assert world.finish().lifecycle.status == "Completed"
    assert world.lines() == ["hello"]
    assert world.job().model_artifact == "s3://out/models/job/output/model.tar.gz"


def test_inputs_that_fill_the_disk(
    world: World, full: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They make room for the record of the failure."""

    def provide(_: object, folders: JobPaths, *__: object, **___: object) -> tuple[()]:
        full.set()
        raise OSError(errno.ENOSPC, "No space left on device", str(folders.root))

    def remove(path: Path) -> None:
        if path.exists():
            full.clear()
        remove_tree(path)

    monkeypatch.setattr(inputs, "provide_channels", provide)
    world.service.create(request())
    wait_for(full.is_set)
    monkeypatch.setattr(clean_up, "remove_tree", remove)
    assert world.finish().lifecycle.status == "Failed"
    assert reason(world).startswith("ClientError: No space is left on the disk of WINDTUNNEL_HOME")


def test_building_the_image_shows_in_the_status(world: World) -> None:
    """A user who waits for an image sees what happens."""
    pause = threading.Event()
    world.runner.images["windtunnel-training"] = Image(build=("step 1 of 9",), pause=pause)
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.transitions[0].message == "step 1 of 9")
    pause.set()
    assert world.finish().lifecycle.transitions[0].message == "Preparing the instances for training"


def test_a_script_that_fails(world: World) -> None:
    """Its failure file is the reason; what it made is stored nevertheless."""

    def script(container: FakeContainer) -> int:
        container.print("about to fail")
        container.write("/opt/ml/output/failure", "ExecuteUserScriptError:\nExitCode 1")
        container.write("/opt/ml/checkpoints/1", "c")
        return 1

    world.runner.script = script
    world.run(request(CheckpointConfig={"S3Uri": "s3://out/c"}))
    told = world.service.describe("job")
    assert told["TrainingJobStatus"] == told["SecondaryStatus"] == "Failed"
    assert told["FailureReason"] == "AlgorithmError: ExecuteUserScriptError:\nExitCode 1, exit code: 1"
    assert [t["Status"] for t in told["SecondaryStatusTransitions"]][-2:] == ["Uploading", "Failed"]
    assert world.lines() == ["about to fail"]
    assert "c/1" in world.objects.keys("out")


def test_a_script_killed_for_memory(world: World) -> None:
    """The reason names the limit."""

    def script(container: FakeContainer) -> int:
        container.finish(137, oom_killed=True)
        return 137

    world.runner.script = script
    world.run(request())
    assert "OutOfMemory: The memory limit of host algo-1 is 32 GiB" in reason(world)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"InputDataConfig": [channel("train", "file:///no/such/path")]}, "/no/such/path"),
        ({"InputDataConfig": [channel("train", "s3://data/none")]}, "No S3 objects found"),
        (
            {"OutputDataConfig": {"S3OutputPath": "s3://none/x"}},
            "bucket of OutputDataConfig.S3OutputPath (s3://none/x) does not exist",
        ),
        (
            {"CheckpointConfig": {"S3Uri": "s3://none/z"}},
            "bucket of CheckpointConfig.S3Uri (s3://none/z) does not exist",
        ),
        ({"HyperParameters": {"sagemaker_submit_directory": '"s3://data/none"'}}, "NoSuchKey"),
        ({"HyperParameters": {"sagemaker_submit_directory": '"s3://"'}}, "'s3://' is not an S3 URI"),
        ({"HyperParameters": {"sagemaker_submit_directory": '"file://here"'}}, "is not absolute"),
    ],
)
def test_inputs_that_cannot_be_provided(world: World, members: dict[str, Any], says: str) -> None:
    """The job fails before any container starts; the next one runs."""
    world.run(request(**members))
    assert says in reason(world)
    assert world.runner.plans == []
    assert world.run(request("next")).lifecycle.status == "Completed"


def test_an_image_that_does_not_exist(world: World) -> None:
    """Named with its fix; never billed."""
    accepted = request()
    accepted["AlgorithmSpecification"]["TrainingImage"] = "mine:1"
    world.run(accepted)
    assert "'mine:1'" in reason(world)
    assert "BillableTimeInSeconds" not in world.service.describe("job")


def test_no_engine(world: World) -> None:
    """The engine's complaint becomes the reason, and the clean-up does not hang on it."""
    world.runner.broken = "no Docker engine; start it with ..."
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.finished and not world.service.busy())
    assert reason(world) == "no Docker engine; start it with ..."
    world.runner.broken = None


def test_an_unexpected_fault_fails_the_job(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """With a traceback in the server's log."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("oops")

    world.runner.start = broken  # type: ignore[assignment, method-assign]
    world.run(request())
    assert reason(world).startswith("InternalServerError: ZeroDivisionError: oops.")
    assert "Traceback" in caplog.text


def test_an_upload_that_fails(world: World) -> None:
    """The job is not Completed without its model."""

    def script(container: FakeContainer) -> int:
        (world.config.home.parent / "objects" / "out").rename(world.config.home.parent / "gone")
        container.write("/opt/ml/model/weights", "w")
        return 0

    world.runner.script = script
    world.run(request())
    assert "Artifact upload failed" in reason(world)


def test_what_does_not_fit_the_disk_is_said_in_units_that_tell(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the script's own reason, and both in the room that AWS gives."""

    def script(container: FakeContainer) -> int:
        container.write("/opt/ml/model/weights", "w" * (3 << 20))
        container.write("/opt/ml/output/failure", "no " * 1000)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
        return 3

    world.runner.script = script
    world.run(request())
    assert len(reason(world)) <= 1024
    assert (
        "\nClientError: Artifact upload failed: weights says that it has 3.0 MiB, but only 1.0 MiB are free"
        in reason(world)
    )


def patient(container: FakeContainer) -> int:
    """Runs until SIGTERM, then saves its model."""
    container.print("training")
    container.sleep_until(container.terminated)
    container.print("saving")
    container.write("/opt/ml/model/weights", "w")
    return 0


def stubborn(container: FakeContainer) -> int:
    """Ignores SIGTERM."""
    container.print("training")
    container.sleep_until(threading.Event())
    return 0


def test_stop(world: World) -> None:
    """SIGTERM reaches the script, what it saves is stored, the status ends as Stopped."""
    world.runner.script = patient
    world.train(request())
    world.service.stop("job")
    assert world.service.describe("job")["TrainingJobStatus"] in {"Stopping", "Stopped"}
    life = world.finish().lifecycle
    assert (life.status, life.secondary) == ("Stopped", "Stopped")
    assert world.lines() == ["training", "saving"]
    assert world.job().model_artifact == "s3://out/models/job/output/model.tar.gz"


@pytest.mark.parametrize("clock_is_set_by_s", [0, -3600])
def test_stop_of_a_script_that_does_not_listen(world: World, clock_is_set_by_s: float) -> None:
    """SIGKILL after the grace period, not before, whatever the wall clock says meanwhile."""
    world.runner.script = stubborn
    world.train(request())
    container = world.runner.container("job")
    world.service.stop("job")
    wait_for(lambda: container.signals == ["TERM"])
    world.clock.set(clock_is_set_by_s)
    world.clock.advance(119)
    assert world.secondary() == "Stopping"
    world.clock.advance(1)
    assert world.finish().lifecycle.status == "Stopped"
    assert container.signals == ["TERM", "KILL"]


def test_stop_while_the_image_is_built(world: World) -> None:
    """The job ends at once, costs nothing and starts no container."""
    world.runner.images["windtunnel-training"] = Image(build=("step 1",), pause=threading.Event())
    world.service.create(request())
    wait_for(lambda: world.job().lifecycle.transitions[0].message == "step 1")
    world.service.stop("job")
    life = world.finish().lifecycle
    assert [t.status for t in life.transitions] == ["Starting", "Stopping", "Stopped"]
    assert life.training_start is None
    assert world.runner.plans == []


def test_max_runtime(world: World) -> None:
    """It counts from the start of the training; the model is kept."""
    world.runner.script = patient
    world.train(request(StoppingCondition={"MaxRuntimeInSeconds": 20}))
    world.clock.advance(19)
    wait_for(lambda: world.lines() == ["training"])
    assert world.secondary() == "Training"
    world.clock.advance(1)
    life = world.finish().lifecycle
    assert (life.status, life.secondary) == ("Stopped", "MaxRuntimeExceeded")
    assert world.job().model_artifact is not None
    assert world.service.describe("job")["BillableTimeInSeconds"] == 20


def test_one_host_fails_and_the_others_are_ended(world: World) -> None:
    """The reason is that of the host that failed first."""

    def script(container: FakeContainer) -> int:
        container.print(f"I am {container.plan.host}")
        if container.plan.host == "algo-2":
            return 7
        return patient(container) or 3

    world.runner.script = script
    world.run(request(hosts=3))
    assert reason(world) == "AlgorithmError: Exit Code: 7"
    assert world.lines(host="algo-1") == ["I am algo-1", "training", "saving"]
    assert world.lines(host="algo-2") == ["I am algo-2"]


def test_a_container_that_vanishes(world: World) -> None:
    """Somebody removed it: the job fails and says so."""
    world.runner.script = patient
    world.train(request())
    wait_for(lambda: world.lines() == ["training"])
    world.runner.remove("job")
    world.finish()
    assert reason(world).startswith("InternalServerError: the container of host algo-1 disappeared")


def test_two_jobs_at_the_same_time(world: World) -> None:
    """Neither waits for the other."""
    world.runner.script = patient
    for name in ("one", "two"):
        world.service.create(request(name))
    for name in ("one", "two"):
        world.reach("Training", name)
        world.service.stop(name)
    wait_for(lambda: not world.service.busy())
    assert [world.job(name).lifecycle.status for name in ("one", "two")] == ["Stopped", "Stopped"]


def test_counters_that_make_no_sense_do_not_fail_the_job(world: World) -> None:
    """They come out of the container."""

    def script(container: FakeContainer) -> int:
        told = ('{"kind":"graph","graph":"g","flops":{"fp32":-1}}', '{"kind":"step","graphs":{"g":1}}')
        container.write("/opt/windtunnel/counters/rank-0.jsonl", "\n".join(told))
        return 0

    world.runner.script = script
    assert world.run(request()).lifecycle.status == "Completed"
    assert world.objects.keys("out") == []
