"""A job that exists: every line once, the right ending, and a way back after Ctrl-C."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.archive import archive
from tests.unit.sdk.fake_service import FakeService, Step
from windtunnel import (
    ConfigurationError,
    Detached,
    JobNotFinished,
    JobNotFound,
    LocalSession,
    PyTorch,
    ServiceCallFailed,
    TrainingJob,
    TrainingJobFailed,
    WaitTimeout,
)
from windtunnel.job.log import wants_logs
from windtunnel.job.next_step import next_step
from windtunnel.session.aws import AwsSession
from windtunnel.session.training_service import LogLine

OUTPUT = "s3://b/out"
TRN1: dict[str, Any] = {"instance_type": "ml.trn1.2xlarge", "instance_count": 1, "framework_version": "2.9"}


def started(session: LocalSession | AwsSession, hosts: int = 1, name: str = "j", **more: Any) -> TrainingJob:
    session.service.create_job(
        {
            "TrainingJobName": name,
            "ResourceConfig": {"InstanceCount": hosts},
            "OutputDataConfig": {"S3OutputPath": OUTPUT},
            **more,
        }
    )
    return TrainingJob(name, session)


def script(session: LocalSession, *steps: Step, failure: str | None = None) -> FakeService:
    service = FakeService(*steps, failure=failure)
    session.service = service
    return service


def test_wait_shows_status_and_every_line_once(local: LocalSession) -> None:
    """Statuses as they change, log lines between them, the seconds at the end."""
    out = io.StringIO()
    started(local).wait(out=out)
    assert out.getvalue().splitlines() == [
        "2026-01-31 12:00:00 Starting - Preparing the instances for training",
        "2026-01-31 12:00:01 Training - Training in progress",
        "one",
        "two",
        "three",
        "2026-01-31 12:00:03 Uploading - Uploading generated training model",
        "four",
        "2026-01-31 12:00:04 Completed - Training job completed",
        "Training seconds: 21",
        "Billable seconds: 20",
        "(Seconds measured here, not on Trainium; job.report() models that.)",
    ]


def test_new_messages_of_a_status_are_shown(local: LocalSession) -> None:
    """Progress of the image build changes the message, not the status: each message is one line."""
    steps: list[Step] = [
        ("InProgress", "Starting", f"Building the training image: step {i}", {}) for i in (1, 2, 2)
    ]
    script(local, *steps, ("Completed", "Completed", "done", {}))
    out = io.StringIO()
    started(local).wait(out=out)
    assert [line.partition(" - ")[2] for line in out.getvalue().splitlines()[:3]] == [
        "Building the training image: step 1",
        "Building the training image: step 2",
        "done",
    ]


def test_lines_of_several_hosts_are_told_apart(local: LocalSession) -> None:
    """With more than one host each line names its own; the seconds count every host."""
    lines = {"algo-1": ("a", "b", "c"), "algo-2": ("d",)}
    script(local, ("InProgress", "Training", "", lines), ("Completed", "Completed", "", {"algo-2": ("e",)}))
    out = io.StringIO()
    started(local, hosts=2).wait(out=out)
    printed = [line for line in out.getvalue().splitlines() if line.startswith("[")]
    assert printed == ["[algo-1] a", "[algo-1] b", "[algo-1] c", "[algo-2] d", "[algo-2] e"]
    assert "Billable seconds: 40" in out.getvalue()


def test_the_seconds_of_all_groups_and_what_spot_saved(local: LocalSession) -> None:
    """As SDK v2 prints them: times the number of all instances, the saving of one instance's seconds."""
    groups = [{"InstanceCount": 1}, {"InstanceCount": 2}]
    out = io.StringIO()
    job = started(local, ResourceConfig={"InstanceGroups": groups}, EnableManagedSpotTraining=True)
    job.wait(out=out)
    assert out.getvalue().splitlines()[-4:] == [
        "Training seconds: 63",
        "Billable seconds: 60",
        "Managed Spot Training savings: 4.8%",
        "(Seconds measured here, not on Trainium; job.report() models that.)",
    ]


def test_silent_wait(local: LocalSession) -> None:
    """logs=False prints nothing; SDK v2's words mean what they mean there."""
    out = io.StringIO()
    started(local).wait(logs=False, out=out)
    assert out.getvalue() == ""
    assert [wants_logs(words) for words in (True, "All", ["Training"])] == [True] * 3
    assert [wants_logs(words) for words in (False, "None", "Rules")] == [False] * 3
    with pytest.raises(ConfigurationError, match=r"logs='Al': .*'All', 'None', 'Training', 'Rules'"):
        wants_logs(["Training", "Al"])


def test_failed_job_raises_with_all_that_helps(local: LocalSession) -> None:
    """Reason, the log's last lines, where the log is, what to do."""
    lines = {"algo-1": tuple(f"line {i}" for i in range(30))}
    reason = 'AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "ValueError: no"'
    script(local, ("InProgress", "Training", "", lines), ("Failed", "Failed", "", {}), failure=reason)
    with pytest.raises(TrainingJobFailed) as caught:
        started(local).wait(out=io.StringIO())
    error = caught.value
    assert (error.name, error.reason) == ("j", reason)
    assert error.log_tail == tuple(f"line {i}" for i in range(10, 30))
    assert error.cause == ""
    assert "windtunnel logs j" in error.logs_location
    assert "the script failed" in error.next_step
    for part in (" ".join(reason.split()), "line 29", error.logs_location, error.next_step):
        assert part in str(error)


@pytest.mark.parametrize(("trained", "told"), [({"steps": 4}, True), (None, False)])
def test_a_rehearsal_that_failed_names_its_report_where_it_has_trained(
    local: LocalSession, trained: dict[str, int] | None, told: bool
) -> None:
    """Of one that failed before its first step there is no answer, and the next step pointed to it."""
    service = script(local, ("Failed", "Failed", "", {}), failure="AlgorithmError: ExecuteUserScriptError:")
    service.objects["b", "out/j/windtunnel/counters.json"] = json.dumps({"train": trained}).encode()
    with pytest.raises(TrainingJobFailed) as caught:
        started(local, Environment={"WINDTUNNEL_REHEARSE_STEPS": "4"}).wait(out=io.StringIO())
    assert ("windtunnel report j" in caught.value.next_step) is told


def test_next_step_of_a_kill_for_memory() -> None:
    """137 as an exit code is about memory, whatever else the reason says; as part of a name it is not. What the local
    backend advises is passed on; AWS knows nothing of its settings.
    """
    killed = "AlgorithmError: OutOfMemory: Process killed by SIGKILL"
    assert "low_cpu_mem_usage" in next_step(killed) and "WINDTUNNEL" not in next_step(killed)
    said = "The memory limit of host algo-1 is 3 GiB, for all. Raise WINDTUNNEL_MEMORY_GIB."
    step = next_step(f"{killed}\nOutOfMemory: {said}")
    assert f" than its host has. {said} " in step and "low_cpu_mem_usage" in step
    for code in ("Exit Code: 137", 'ExecuteUserScriptError:\nExitCode 137\nErrorMessage ""', "exitcode: -9"):
        assert "in most cases" in next_step(f"AlgorithmError: {code}")
    account = "rank 1 exited with signal SIGKILL (9); {} 2 GiB"
    full = account.format("a process was ended because memory was full: all may have")
    assert next_step("AlgorithmError: ", cause=full).startswith("the job needed more memory")
    others = account.format(
        "a process was ended because this machine's memory was full: all of this host's had"
    )
    assert next_step("AlgorithmError: OutOfMemory", cause=others).startswith("other programs had filled")
    assert "not because of memory" in next_step(
        "AlgorithmError: ", cause=account.format("no process was ended for memory;")
    )
    assert "doctor" in next_step("ClientError: no image")
    assert "doctor" in next_step("ClientError: No S3 objects found under S3 URL s3://b/run-137/x")


@pytest.mark.parametrize(
    ("secondary", "why"),
    [
        ("Stopped", "it was stopped"),
        ("MaxRuntimeExceeded", "it reached max_run"),
        ("MaxWaitTimeExceeded", "it reached max_wait"),
    ],
)
def test_stopped_job_is_no_error(local: LocalSession, secondary: str, why: str) -> None:
    """The job is returned, and the last line says why it is not Completed."""
    script(local, ("Stopped", secondary, "", {}))
    out = io.StringIO()
    assert started(local).wait(out=out).status() == "Stopped"
    assert f"Job ended as Stopped, not Completed: {why}. Check" in out.getvalue()


def test_ctrl_c_detaches_and_leaves_the_job_alone(local: LocalSession) -> None:
    """A KeyboardInterrupt that says how to come back; the job is not stopped."""
    service = script(local, ("InProgress", "Training", "", {"algo-1": ("x",)}))
    service.interrupt_reading = True
    with pytest.raises(Detached, match=r"logs -f j, or TrainingJob.attach\('j'\).wait\(\)") as caught:
        started(local).wait(out=io.StringIO())
    assert isinstance(caught.value, KeyboardInterrupt)
    assert not isinstance(caught.value, Exception)
    assert service.stopped == []


def test_on_aws_the_commands_that_are_named_ask_there(
    aws: AwsSession, service: FakeService, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To come back, to stop a job that is billed, to see what it lacks: of this machine they would find none."""
    service.script = (("InProgress", "Training", "", {"algo-1": ("x",)}),)
    job = started(aws)
    with pytest.raises(JobNotFinished, match=r"`windtunnel logs -f j --aws`"):
        _ = job.model_data
    service.interrupt_reading = True
    with pytest.raises(Detached, match=r"logs -f j --aws, .*'j', AwsSession\(\).* windtunnel stop j --aws\."):
        job.wait(out=io.StringIO())

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(service, "create_job", interrupted)
    estimator = PyTorch("train.py", role="arn:aws:iam::1:role/r", source_dir="src", session=aws, **TRN1)
    with pytest.raises(KeyboardInterrupt, match=r"`windtunnel ps --aws` .* `windtunnel stop k --aws`"):
        estimator.fit(job_name="k", wait=False)


def test_a_job_that_ends_while_it_is_stopped_is_no_error(
    local: LocalSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS refuses to stop what has ended; any other refusal is one."""

    def refused(_: str) -> None:
        raise ServiceCallFailed("StopTrainingJob", "ValidationException", "it is in status Completed")

    running: Step = ("InProgress", "Training", "", {})
    service = script(local, running, ("Completed", "Completed", "", {}))
    monkeypatch.setattr(service, "stop_job", refused)
    started(local).stop()
    service.script = (running,)
    with pytest.raises(ServiceCallFailed, match="StopTrainingJob"):
        started(local, name="k").stop()


def test_timeout(local: LocalSession) -> None:
    """The wait ends, the job does not."""
    service = script(local, ("InProgress", "Training", "", {}))
    with pytest.raises(WaitTimeout, match="goes on"):
        started(local).wait(timeout=0.01, out=io.StringIO())
    assert service.stopped == []


def test_logs_from_any_process(local: LocalSession) -> None:
    """What there is now, or all until the end; a second reader starts from the first line."""
    job = started(local)
    assert list(job.logs()) == []
    assert list(TrainingJob.attach("j", local).logs(follow=True)) == ["one", "two", "three", "four"]
    assert list(job.logs()) == ["one", "two", "three", "four"]
    assert job.log_tail(2) == ["three", "four"]


def test_an_empty_page_of_a_log_leads_on(local: LocalSession) -> None:
    """As CloudWatch gives one where nothing was printed for a while, at the beginning too."""

    class Sparse(FakeService):
        def read_log(self, stream: str, token: str | None) -> tuple[Sequence[LogLine], str | None]:
            return ((), "0") if token is None else super().read_log(stream, token)

    local.service = sparse = Sparse(("Completed", "Completed", "", {}))
    sparse.printed["j/algo-1-1700000000"] = ["one", "two"]
    assert list(started(local).logs()) == ["one", "two"]


def test_attach_to_nothing(local: LocalSession) -> None:
    """The message names the job and where to look."""
    with pytest.raises(JobNotFound, match=r"No training job 'nope' .*windtunnel ps"):
        TrainingJob.attach("nope", local)


def test_stop_is_idempotent(local: LocalSession) -> None:
    """A running job is asked to stop; one that has ended is left alone."""
    service = script(local, ("InProgress", "Training", "", {}), ("Completed", "Completed", "", {}))
    job = started(local)
    job.stop()
    job.stop()
    assert service.stopped == ["j"]


def test_download_model(local: LocalSession, service: FakeService, tmp_path: Path) -> None:
    """The files, or the archive itself."""
    job = started(local)
    job.wait(logs=False)
    service.objects["b", "out/j/output/model.tar.gz"] = archive(("model.pt", b"weights"))
    assert (job.download_model(tmp_path / "m") / "model.pt").read_bytes() == b"weights"
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["model.pt"]
    kept = job.download_model(tmp_path / "n", extract=False)
    assert kept.name == "model.tar.gz"
    kept.write_bytes(b"another job's")
    assert (job.download_model(tmp_path / "n") / "model.pt").exists()
    assert kept.read_bytes() == b"another job's"


def test_a_folder_of_the_console_is_no_file(
    local: LocalSession, service: FakeService, tmp_path: Path
) -> None:
    """S3's console makes an empty object for one; it stood in the way of the files in it."""
    job = started(local)
    for key in ("out/j/output/", "out/j/output/a/", "out/j/output/a/w.pt"):
        service.objects["b", key] = b""
    assert job.download(tmp_path / "m") == (tmp_path / "m" / "a" / "w.pt",)


def test_download_stays_in_its_directory(local: LocalSession, service: FakeService, tmp_path: Path) -> None:
    """A model archive cannot write beside the directory it is unpacked in."""
    job = started(local)
    job.wait(logs=False)
    service.objects["b", "out/j/output/model.tar.gz"] = archive(("../evil", b"x"))
    with pytest.raises((tarfile.TarError, JobNotFinished)):
        job.download_model(tmp_path / "m")
    assert not (tmp_path / "evil").exists()


def test_uncompressed_model(local: LocalSession, tmp_path: Path) -> None:
    """With disable_output_compression the model is a prefix: its files are fetched one by one."""

    class Uncompressed(FakeService):
        def describe_job(self, name: str) -> dict[str, Any]:
            found = super().describe_job(name)
            found["ModelArtifacts"] = {"S3ModelArtifacts": "s3://b/out/j/output/model/"}
            return found

    local.service = fake = Uncompressed(("Completed", "Completed", "", {}))
    fake.objects["b", "out/j/output/model/a/w.pt"] = b"weights"
    assert (started(local).download_model(tmp_path / "m") / "a" / "w.pt").read_bytes() == b"weights"


def test_results_that_are_not_there_yet(local: LocalSession) -> None:
    """Model and counters of a running job: the message says to wait."""
    script(local, ("InProgress", "Training", "", {}))
    job = started(local)
    with pytest.raises(
        JobNotFinished, match=r"has no model \(InProgress\): not until it has ended.*job\.wait\(\)"
    ):
        _ = job.model_data
    with pytest.raises(JobNotFinished, match=r"has no counters \(InProgress\)"):
        job.counters()


def test_counters_and_metrics(local: LocalSession, service: FakeService) -> None:
    """Counters come through S3 from the job's own output; metrics from the description."""
    job = started(local)
    service.objects["b", "out/j/windtunnel/counters.json"] = json.dumps({"schema": "x"}).encode()
    assert job.counters() == {"schema": "x"}
    assert job.metrics() == {"loss": 0.25}
