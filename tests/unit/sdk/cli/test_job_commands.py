"""`windtunnel describe`, `metrics`, `download`, `rm`: a job from the terminal."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tarfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.fakes.archive import archive
from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import NOW, FakeService, Step
from windtunnel.cli import main as cli
from windtunnel.job.metric_series import period_s
from windtunnel.reports.aws_job.description import DescribedJob
from windtunnel.reports.metric_series import MetricPoint, MetricSeries
from windtunnel.session.aws import AwsSession

RUN = (
    "run train.py --source-dir src --job-name j --channel train=data --hp lr=1e-4 --hp steps=1e3 --max-run 1e6 "
    "--no-wait"
)
RUNS: tuple[Step, ...] = (("InProgress", "Training", "", {}),)


@pytest.fixture
def job(jobs: FakeService, invoke: Invoke) -> FakeService:
    """A job ``j`` that was started from the command line and has ended."""
    invoke(*RUN.split(), "--metric", "loss=loss=([0-9.]+)")
    for _ in jobs.script:
        jobs.describe_job("j")
    return jobs


def stored(job: FakeService, *names: str, member: str = "file") -> tuple[str, str]:
    """Bucket and prefix of the job's output, with these archives in it."""
    output = job.requests["j"]["OutputDataConfig"]["S3OutputPath"].rstrip("/")
    bucket, _, prefix = f"{output}/j/output/".removeprefix("s3://").partition("/")
    for name in names:
        job.objects[bucket, prefix + name] = archive((member, b"weights"))
    return bucket, prefix


def test_describe_says_it_all(
    job: FakeService, rehearsal: Callable[[Any], None], counters: Any, invoke: Invoke
) -> None:
    """What became of it, what it would cost, what was asked for; nothing of what the SDK sends for itself."""
    rehearsal({**counters(), "instance_type": "ml.trn1.2xlarge"})
    text = invoke("describe", "j").out
    for line in (
        r"Name +j", r"Status +Completed", r"  Uploading +2026-01-31 .* Uploading generated training model",
        r"Billable +20 s", r"Metric loss +0\.25", r"Instance +ml\.trn1\.2xlarge x 1", r"Stops after +1,000,000 s",
        r"Channel train +file://\S+/data",
        r"Hyperparameter lr +0\.0001", r"Hyperparameter steps +1000", r"Script +train\.py",
        r"Cost +\$[\d.,]+ \(\$.* to \$.*\), modelled for ml\.trn1\.2xlarge at its price of \d{4}-\d\d-\d\d "
        r"\(windtunnel report j\)",
    ):  # fmt: skip
        assert re.search(rf"^{line}$", text, flags=re.MULTILINE), line
    assert "sagemaker_" not in text
    assert "FailureReason" not in text


def test_seconds_of_several_instances_are_of_each(jobs: FakeService, invoke: Invoke) -> None:
    """As AWS states them; `run` ends with their sum, as SageMaker's SDK does."""
    jobs.script = (("Completed", "Completed", "", {}),)
    invoke(*RUN.split(), "--instance-count", "2")
    text = invoke("describe", "j").out
    assert re.search(r"^Billable +20 s of each instance$", text, flags=re.MULTILINE)


def test_describe_of_a_failed_job(jobs: FakeService, invoke: Invoke) -> None:
    """Why, in a line that a terminal obeys in nothing; no cost where there is no report."""
    jobs.script, jobs.failure = (("Failed", "Failed", "", {}),), "ClientError: no\n\x1b[2J image"
    invoke(*RUN.split())
    text = invoke("describe", "j").out
    assert re.search(r"^FailureReason +ClientError: no \\x1b\[2J image$", text, flags=re.MULTILINE)
    assert "Cost" not in text


def test_describe_for_programs(job: FakeService, tmp_path: Path, invoke: Invoke) -> None:
    """DescribeTrainingJob's answer as the AWS CLI prints it: what reads that, as report --describe, reads this."""
    text = invoke("describe", "j", "--json").out
    assert json.loads(text)["CreationTime"] == NOW.isoformat()
    (tmp_path / "job.json").write_text(text)
    assert DescribedJob.load(tmp_path / "job.json").describe()["CreationTime"] == NOW


def test_metrics_over_time(job: FakeService, tmp_path: Path, invoke: Invoke) -> None:
    """A line a period, the final values, a learning curve, and the same for programs."""
    job.values["j", "loss"] = [(NOW + timedelta(seconds=at), 1 / (at + 1)) for at in (0, 1, 3)]
    text = invoke("metrics", "j").out
    assert re.findall(r":\d\d +([\d.]+) *$", text, flags=re.MULTILINE) == ["1", "0.5", "0.25"]
    assert re.search(r"^ *final +0\.25 *$", text, flags=re.MULTILINE)
    data = json.loads(invoke("metrics", "j", "--json").out)
    assert data["period_seconds"] >= 1
    assert data["series"]["loss"][1] == {
        "time": (NOW + timedelta(seconds=1)).isoformat(),
        "average": 0.5,
        "samples": 1,
    }
    assert data["final"] == {"loss": 0.25}
    page = tmp_path / "curves.html"
    invoke("metrics", "j", "--html", str(page))
    assert "Metrics over time: loss from 1 to 0.25." in page.read_text()


def test_large_values_of_metrics_keep_their_digits(job: FakeService, invoke: Invoke) -> None:
    """As DescribeTrainingJob has them, in no exponent."""
    job.values["j", "loss"] = [(NOW, 1_000_000.0), (NOW + timedelta(seconds=1), 1_234_567.89)]
    text = invoke("metrics", "j").out
    assert re.findall(r":\d\d +([\d.,e+]+) *$", text, flags=re.MULTILINE) == ["1,000,000", "1,234,568"]


def test_a_page_of_metrics_whose_names_are_formulas() -> None:
    """matplotlib reads what is between dollars as one, and ends with what is none; of 13 metrics one is not drawn."""
    points = (MetricPoint(NOW, 1.0, 1), MetricPoint(NOW + timedelta(seconds=1), 2.0, 1))
    names = ["a$_$b", *map(str, range(12))]
    series = MetricSeries("j", 1, dict.fromkeys(names, points), {})
    page = series.to_html()
    assert "a$_$b" in page and "Not drawn: 1 metric more." in page


def test_metrics_of_a_job_without(jobs: FakeService, invoke: Invoke) -> None:
    """Says how to have some."""
    invoke(*RUN.split())
    assert "windtunnel run --metric" in invoke("metrics", "j", exits=2).err


@pytest.mark.parametrize(
    ("hours", "days_ago", "period"),
    [(0.1, None, 1), (1, None, 5), (10, None, 30), (0.1, 1, 60), (30, 2, 300), (1, 20, 300), (1, 100, 3600),
     (0.1, -1e-5, 60)],
)  # fmt: skip
def test_the_period_of_a_series(hours: float, days_ago: float | None, period: int) -> None:
    """The shortest that one answer of CloudWatch has room for; on AWS also for which it keeps values so old. A job
    may have begun in a second that this machine's clock has not reached.
    """
    begun = datetime(2026, 1, 1, tzinfo=timezone.utc)
    age = None if days_ago is None else timedelta(days=days_ago)
    assert period_s(begun, begun + timedelta(hours=hours), age) == period


def test_download_fetches_all_and_replaces_nothing(job: FakeService, project: Path, invoke: Invoke) -> None:
    """Into a folder of the job's name; where a file is there already nothing is downloaded, unless told to."""
    stored(job, "model.tar.gz", "output.tar.gz")
    files = [project / "j" / name for name in ("model.tar.gz", "output.tar.gz")]
    assert invoke("download", "j").out.split() == [str(file) for file in files]
    files[0].write_text("mine")
    files[1].unlink()
    assert f"{files[0]} exists already" in invoke("download", "j", exits=2).err
    assert (files[0].read_text(), files[1].exists()) == ("mine", False)
    invoke("download", "j", "--overwrite")
    assert tarfile.is_tarfile(files[0])
    assert sorted(path.name for path in (project / "j").iterdir()) == ["model.tar.gz", "output.tar.gz"]


def test_download_unpacks_only_when_asked(job: FakeService, project: Path) -> None:
    """Each archive into a folder of its name, which must not be there."""
    stored(job, "model.tar.gz", "output.tar.gz")
    assert cli.main(["download", "j", "d", "-x"]) == 0
    found = sorted(str(path.relative_to(project / "d")) for path in (project / "d").rglob("*"))
    assert found == ["model", "model/file", "output", "output/file"]
    assert cli.main(["download", "j", "d", "-x"]) == 2
    assert cli.main(["download", "j", "-x", "between"]) == 0
    assert (Path("between") / "model").is_dir()


@pytest.mark.parametrize("filters", [True, False])
def test_a_hostile_archive_stays_packed(
    job: FakeService, project: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, filters: bool
) -> None:
    """Nothing is written beside the folder; the archive is kept to look at. Debian 12's tarfile has no filters."""
    if not filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    stored(job, "model.tar.gz", member="../../evil")
    said = invoke("download", "j", "d", "-x", exits=1).err
    assert "d/model.tar.gz is not unpacked, and stays as it is" in said
    assert not list(project.rglob("evil"))
    assert (project / "d" / "model.tar.gz").exists()


def test_what_is_no_archive_stays_as_it_is(job: FakeService, project: Path, invoke: Invoke) -> None:
    """Truncated, of another kind, or with names that no file can have: a message, no traceback."""
    bucket, prefix = stored(job)
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 13
    nul = header.tobuf() + b"13 path=a\0b\n".ljust(512, b"\0") + tarfile.TarInfo("a").tobuf() + bytes(1024)
    for data in (archive(("file", b"x" * 100_000))[:60], gzip.compress(nul)):
        job.objects[bucket, f"{prefix}model.tar.gz"] = data
        assert "is not unpacked" in invoke("download", "j", "d", "-x", "--overwrite", exits=1).err


def test_a_key_that_no_file_can_have_is_named(job: FakeService, project: Path, invoke: Invoke) -> None:
    """S3 takes any text, and nothing is downloaded."""
    bucket, prefix = stored(job)
    job.objects[bucket, f"{prefix}a\0b"] = b""
    assert "a\\x00b would land outside" in invoke("download", "j", "d", exits=1).err
    assert not (project / "d").exists()


def test_a_place_that_cannot_be_written_is_named(job: FakeService, project: Path, invoke: Invoke) -> None:
    """Also where an archive came and its files do not fit: it stays, and who unpacked it knows that it is not whole."""
    stored(job, "model.tar.gz")
    (project / "file").touch()
    assert "file/model.tar.gz cannot be written" in invoke("download", "j", "file", exits=2).err
    (project / "d").mkdir()
    (project / "d" / "model").touch()
    said = invoke("download", "j", "d", "-x", "--overwrite", exits=1).err
    assert f"{project / 'd' / 'model'} may hold a part of it" in said


@pytest.mark.parametrize(("command", "what"), [("download", "output"), ("diagnostics", "counters")])
def test_a_result_before_there_is_one(
    jobs: FakeService, project: Path, invoke: Invoke, command: str, what: str
) -> None:
    """Says which command follows the job until it ends, and makes no folder."""
    jobs.script = RUNS
    invoke(*RUN.split())
    said = f"has no {what} (InProgress): not until it has ended. Follow it with `windtunnel logs -f j`"
    assert said in invoke(command, "j", exits=1).err
    assert not (project / "j").exists()


def test_rm_deletes_what_has_ended(job: FakeService, invoke: Invoke) -> None:
    """The others are left alone, with what to do; exit code 1 says that not all are gone."""
    captured = invoke("rm", "j", "nope", exits=1)
    assert captured.out == "j is deleted.\n"
    assert "No training job 'nope'" in captured.err
    assert job.requests == {}
    job.script = RUNS
    invoke(*RUN.split())
    said = invoke("rm", "j", exits=1).err
    assert "it has not ended (InProgress). It ends with: windtunnel stop j; then" in said
    assert list(job.requests) == ["j"]


@pytest.mark.parametrize("end", ["Stopped", "Failed"])
def test_stop_waits_for_all_ends(jobs: FakeService, invoke: Invoke, end: str) -> None:
    """Of those that it stops; however they end, and though one is not there, which the exit code says."""
    jobs.script = (*RUNS * 5, ("Stopping", "Stopping", "", {}), (end, end, "", {}))
    invoke(*RUN.split())
    captured = invoke("stop", "nope", "j", "--wait", exits=1)
    assert captured.out.splitlines()[-1] == f"j has ended: {end}."
    assert jobs.stopped == ["j"]
    assert invoke("stop", "j", "--wait").out == f"j has ended already: {end}.\n"


@pytest.mark.parametrize("command", ["describe", "metrics", "download", "rm"])
def test_on_aws_too(
    command: str, job: FakeService, aws: AwsSession, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    """With --aws the session is AWS's."""
    stored(job, "model.tar.gz")
    asked = Mock(return_value=aws)
    monkeypatch.setattr("windtunnel.session.aws.AwsSession", asked)
    assert aws.service is job
    assert cli.main([command, "j", "--aws"]) == 0
    asked.assert_called_once()


def test_a_profile_that_does_not_exist_is_no_traceback(
    project: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """A wrong argument of the shell's, like any other."""
    monkeypatch.setenv("AWS_PROFILE", "nope")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(project / "none"))
    said = invoke("run", "src/train.py", "--aws", "--role", "arn:aws:iam::1:role/r", exits=2).err
    assert "The config profile (nope) could not be found" in said


def test_what_is_named_next_on_aws_asks_there(
    jobs: FakeService,
    aws: AwsSession,
    monkeypatch: pytest.MonkeyPatch,
    invoke: Invoke,
) -> None:
    """`run`, `stop`, `describe` name commands that find the job, and no Trainium that it did run on."""
    monkeypatch.setattr("windtunnel.session.aws.AwsSession", lambda: aws)
    given = ["run", "train.py", "--source-dir", "src", "--role", "arn:aws:iam::1:role/r", "--aws"]
    described = jobs.describe_job
    arn = {"TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/j"}
    monkeypatch.setattr(jobs, "describe_job", lambda name: {**described(name), **arn})
    assert "What it took and cost: windtunnel report j --aws\n" in invoke(*given, "--job-name", "j").out
    assert "(windtunnel report j --aws)" in invoke("describe", "j", "--aws").out
    jobs.script = (("Stopped", "Stopped", "", {}),)
    assert "windtunnel report k --aws is of what ran" in invoke(*given, "--job-name", "k", exits=1).err
    jobs.script = RUNS
    assert "windtunnel logs -f l --aws\n" in invoke(*given, "--job-name", "l", "--no-wait").err
    assert "windtunnel logs -f l --aws shows" in invoke("stop", "l", "--aws").out


def test_a_shell_completes_commands_and_options(invoke: Invoke) -> None:
    """bash, with what it was given; the other shells' scripts have the same words."""
    script = invoke("completion", "bash").out
    ask = 'COMP_WORDS=(windtunnel {0}); COMP_CWORD={1}; _shtab_windtunnel; echo "${{COMPREPLY[@]}}"'
    for words, place, found in (
        ("de", 1, "describe"),
        ("do", 1, "down download doctor"),
        ("ps --js", 2, "--json"),
        ("cluster re", 2, "report"),
        ("cluster de", 2, "describe delete"),
        ("image b", 2, "build"),
        ("doctor --re", 2, "--restore"),
    ):
        bash = subprocess.run(
            ["bash", "-c", f"{script}\n{ask.format(words, place)}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert sorted(bash.stdout.split()) == sorted(found.split())
    for shell in ("zsh", "fish"):
        assert {"describe", "doctor", "overwrite"} <= set(re.findall(r"\w+", invoke("completion", shell).out))
