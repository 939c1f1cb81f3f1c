"""Whole jobs: estimator, backend, container, simulated cores. What goes right, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docker.conftest import PATIENCE_S, SCRIPTS, estimator, kill_server
from tests.fakes.archive import archive
from tests.unit.service.samples import channel
from tests.waiting import wait_for
from windtunnel import ConfigurationError, LocalSession, TrainingJob, TrainingJobFailed, WindtunnelError

pytestmark = pytest.mark.docker

TORCHRUN = {"torch_distributed": {"enabled": True}}


def failure(job: TrainingJob) -> str:
    """Wait for a job that must fail; its reason."""
    with pytest.raises(TrainingJobFailed) as failed:
        job.wait(logs=False, timeout=PATIENCE_S)
    assert job.status() == "Failed"
    assert job.name in str(failed.value)
    return str(job.describe()["FailureReason"])


def saw(job: TrainingJob) -> list[dict[str, Any]]:
    """What its hosts, or workers, have printed behind SAW."""
    lines = [line.partition("SAW ")[2] for line in job.logs() if "SAW " in line]
    return [json.loads(line) for line in lines]


def test_two_hosts_with_two_cores_beside_two_others(session: LocalSession, tmp_path: Path) -> None:
    """Ranks 0-3, the right SM_HOSTS, equal gradients on all. Another job's hosts, which have the same names and are
    there all the time, find only each other.
    """
    (tmp_path / "file").write_text("a channel needs one")
    others = estimator(session, "neighbours.py", instance_count=2).fit({"end": str(tmp_path)}, wait=False)
    wait_for(lambda: others.describe()["SecondaryStatus"] == "Training", patience_s=PATIENCE_S, pause_s=0.3)
    job = estimator(session, "two_hosts.py", instance_count=2, distribution=TORCHRUN).fit(logs=False)
    assert others.status() == "InProgress"
    (tmp_path / "now").touch()
    said = sorted(saw(job), key=lambda entry: int(entry["rank"]))
    assert [(entry["rank"], entry["host"], entry["local"]) for entry in said] == [
        (0, "algo-1", 0),
        (1, "algo-1", 1),
        (2, "algo-2", 0),
        (3, "algo-2", 1),
    ]
    for entry in said:
        assert entry["world"] == 4
        assert json.loads(entry["hosts"]) == ["algo-1", "algo-2"]
        assert entry["equal"] and entry["norm"] > 0
        assert entry["halves"] == {0: 2.0, 1: 4.0}[entry["rank"] % 2]
        assert entry["everyone"] == [0, 1, 2, 3]
    shown = list(job.logs(fold=True))
    assert sum("lines folded: the toolkit's environment" in line for line in shown) == 2  # a host one
    assert not [line for line in shown if "SM_HOSTS=" in line]
    assert job.describe()["ResourceConfig"]["InstanceCount"] == 2
    assert job.counters()["world_size"] == 4

    others.wait(logs=False, timeout=PATIENCE_S)
    one, two = saw(others)
    assert one == two
    assert [len(addresses) for addresses in one.values()] == [1, 1]
    assert one["algo-1"] != one["algo-2"]


def test_what_goes_wrong_in_a_script_is_said_and_the_next_job_runs(session: LocalSession) -> None:
    """An exception, too much memory, a killed toolkit, a script that never ends."""
    jobs = {
        how: estimator(
            session,
            hyperparameters={"how": how},
            max_run=20 if how == "forever" else 600,
            distribution=TORCHRUN if how == "memory" else None,
        ).fit(wait=False)
        for how in ("raise", "memory", "killed", "forever")
    }
    reason = failure(jobs["raise"])
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 1")
    # The toolkit reads unbuffered output as it comes, and may break a line in two.
    assert "ValueError" in reason and "the learning rate is a banana" in reason

    reason = failure(jobs["memory"])
    assert "signal SIGKILL (9); a process was ended because memory was full: all of this host's may" in reason
    # The largest process may have had 2.04 GiB.
    assert len(re.findall(r"(?<![\d.])4 GiB", reason)) == 2 and "WINDTUNNEL_MEMORY_GIB" in reason

    assert failure(jobs["killed"]).startswith("AlgorithmError: Exit Code: 137")

    jobs["forever"].wait(logs=False, timeout=PATIENCE_S)
    described = jobs["forever"].describe()
    assert (described["TrainingJobStatus"], described["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    assert 20 <= described["BillableTimeInSeconds"] < 200

    assert estimator(session, hyperparameters={"how": "nothing"}).fit(logs=False).status() == "Completed"


def test_a_stop_keeps_what_the_script_has_saved(session: LocalSession, tmp_path: Path) -> None:
    """Status Stopped, and what lay in the model directory is uploaded; its line came while it still ran."""
    job = estimator(session, hyperparameters={"how": "save-and-wait"}).fit(wait=False)
    assert "running" in job.logs(follow=True)
    assert job.status() == "InProgress"
    job.stop()
    job.wait(logs=False, timeout=PATIENCE_S)
    assert job.status() == "Stopped"
    assert (job.download_model(tmp_path) / "saved").read_text() == "state"


def test_what_is_wrong_before_the_start_is_said_at_once(session: LocalSession, tmp_path: Path) -> None:
    """A missing entry point, a missing local channel, a long hyperparameter: nothing is started."""
    before = len(jobs_of(session))
    with pytest.raises(WindtunnelError, match=r"behaves\.py.*behave\.py"):
        estimator(session, "behaves.py").fit()
    with pytest.raises(WindtunnelError, match="no-such-folder"):
        estimator(session).fit({"train": str(tmp_path / "no-such-folder")})
    with pytest.raises(ConfigurationError, match=r"words.*3,?002.*2,?500"):
        estimator(session, hyperparameters={"words": "x" * 3000}).fit()
    with pytest.raises(ConfigurationError, match="torch_distributed"):
        estimator(session, distribution={"smdistributed": {"dataparallel": {"enabled": True}}}).fit()
    assert len(jobs_of(session)) == before


def test_what_only_the_backend_can_see_fails_the_job_with_the_fix(
    session: LocalSession, tmp_path: Path
) -> None:
    """Unknown channel paths, an unsafe tarball, an image that does not exist, through plain boto3."""
    client = session.service.client("sagemaker")  # type: ignore[attr-defined]
    s3 = session.service.client("s3")  # type: ignore[attr-defined]
    bucket = session.default_bucket()
    session.service.ensure_bucket(bucket)
    outside = archive(("behave.py", b""), ("../outside", b""))
    s3.put_object(Bucket=bucket, Key="unsafe/sourcedir.tar.gz", Body=outside)
    good = estimator(session, hyperparameters={"how": "nothing"})
    first = good.fit(wait=False)  # puts the code where the requests below find it
    first.stop()
    request = good.request().to_dict()
    request["HyperParameters"] = first.describe()["HyperParameters"]

    def create(name: str, **changes: Any) -> TrainingJob:
        client.create_training_job(**{**request, **changes, "TrainingJobName": name})
        return TrainingJob.attach(name, session=session)

    unsafe = {
        **request["HyperParameters"],
        "sagemaker_submit_directory": f'"s3://{bucket}/unsafe/sourcedir.tar.gz"',
    }
    jobs = {
        "nowhere": create(
            "channel-nowhere", InputDataConfig=[channel("train", f"file://{tmp_path}/nowhere")]
        ),
        "empty": create("channel-empty", InputDataConfig=[channel("train", f"s3://{bucket}/no/such/prefix")]),
        "unsafe": create("tarball-unsafe", HyperParameters=unsafe),
        "image": create(
            "image-missing",
            AlgorithmSpecification={**request["AlgorithmSpecification"], "TrainingImage": "no-such-image:1"},
        ),
    }
    assert f"{tmp_path}/nowhere" in failure(jobs["nowhere"])
    assert f"s3://{bucket}/no/such/prefix" in failure(jobs["empty"])
    assert "../outside" in failure(jobs["unsafe"])
    assert "no-such-image:1" in failure(jobs["image"])
    assert not (session.home.parent / "outside").exists()
    assert create("after-all-that").wait(logs=False, timeout=PATIENCE_S).status() == "Completed"


def test_without_an_engine_the_job_fails_with_the_way_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No hang, and the backend goes on."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    alone = LocalSession(home=tmp_path / "home")
    try:
        reason = failure(estimator(alone, hyperparameters={"how": "nothing"}).fit(wait=False))
        assert "Docker" in reason and "start" in reason
    finally:
        os.kill(alone.backend.ensure().pid, signal.SIGTERM)


def test_kill_9_of_the_backend_loses_no_line_and_no_job(session: LocalSession) -> None:
    """Killed in the middle, attached to from another process: completed, every line once, in order."""
    job = estimator(session, hyperparameters={"how": "lines"}).fit(wait=False)
    wait_for(
        lambda: sum(line.startswith("line ") for line in job.logs()) >= 40, "40 lines", patience_s=PATIENCE_S
    )
    kill_server(session)
    follower = (
        "import sys, windtunnel\n"
        "session = windtunnel.LocalSession(home=sys.argv[2])\n"
        "windtunnel.TrainingJob.attach(sys.argv[1], session=session).wait(logs=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", follower, job.name, str(session.home)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for lines in (done.stdout.splitlines(), list(job.logs())):
        numbers = [int(line.split()[1]) for line in lines if line.startswith("line ")]
        assert numbers == list(range(200))
    assert job.status() == "Completed"


@pytest.mark.skipif(
    os.getuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv to be another user"
)
def test_files_belong_to_the_calling_user(tmp_path: Path) -> None:
    """A whole job run by user 12345: everything in its home is that user's."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12345)
    socket_group = Path("/var/run/docker.sock").stat().st_gid
    # The capability lets that user reach an interpreter below /root; it gives no way to write as root.
    command = [
        "setpriv", "--reuid=12345", "--regid=12345", f"--groups={socket_group}",
        "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
        sys.executable, "-c", OTHER_USER, str(SCRIPTS), str(home),
    ]  # fmt: skip
    done = subprocess.run(
        command,
        env={**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left by 12345" in done.stdout
    owners = {os.lstat(path).st_uid for path in [home, *home.rglob("*")]}
    assert owners == {12345}
    assert (home / "model" / "deep" / "er" / "file").exists()


OTHER_USER = """
import sys
import windtunnel
session = windtunnel.LocalSession(home=sys.argv[2] + "/state")
estimator = windtunnel.PyTorch(
    "behave.py", source_dir=sys.argv[1], framework_version="2.9", instance_type="ml.trn1.2xlarge",
    instance_count=1, hyperparameters={"how": "leave-files"}, session=session,
)
estimator.fit().download_model(sys.argv[2] + "/model")
session.backend.stop()  # it removes files of its own, and others look at them
"""


def jobs_of(session: LocalSession) -> list[str]:
    """Names of all jobs of the session's backend."""
    client = session.service.client("sagemaker")  # type: ignore[attr-defined]
    return [
        job["TrainingJobName"] for job in client.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]
    ]
