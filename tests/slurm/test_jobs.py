"""Jobs of the `slurm` runner on a real cluster: what Slurm, its daemons and people do to them."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tests import processes, waiting
from tests.faults.backend import Backend
from tests.slurm.cluster import NODES, Cluster
from tests.slurm.conftest import own_backend
from tests.slurm.jobs import lines, request
from windtunnel_local.runner import runner_kind
from windtunnel_local.runner.runner_kind import Check
from windtunnel_local.runner.slurm import SlurmRunner, SlurmSettings
from windtunnel_local.runner.without_container.interpreter import Interpreter
from windtunnel_local.settings import Settings

pytestmark = pytest.mark.slurm

_ENDLESS = 100_000


wait_for = partial(waiting.wait_for, patience_s=120.0, pause_s=0.1)


def last_message(backend: Backend, job: str) -> str:
    """Of the job's present state, with its name."""
    last = backend.describe(job)["SecondaryStatusTransitions"][-1]
    return f"{last['Status']}: {last['StatusMessage']}"


def await_lines(backend: Backend, job: str, count: int = 1) -> None:
    """Until the job has printed so many."""
    wait_for(lambda: len(backend.log(job)) >= count, f"{count} lines of {job}")


def ended(backend: Backend, job: str) -> tuple[str, str]:
    """The status, and the reason of a failure."""
    found = backend.end_of(job)
    return found["TrainingJobStatus"], found.get("FailureReason", "")


def numbers(cluster: Cluster) -> list[str]:
    """The jobs that are in Slurm's queue."""
    return cluster.call("squeue", "--me", "--noheader", "--format=%i").split()


def block(cluster: Cluster) -> str:
    """Take all nodes for a job that is none of ours; its number."""
    options = (f"--nodes={len(NODES)}", "--exclusive", "--parsable", "--output=/dev/null")
    number = cluster.call("sbatch", *options, "--wrap=sleep 1000").strip()
    wait_for(lambda: "RUNNING" in cluster.call("squeue", "--noheader", "--format=%T"), "the blocking job")
    return number


def test_a_job_runs_prints_and_ends(backend: Backend, train: Path) -> None:
    """Its lines, in order; its exit code, in FailureReason; nothing is left of it."""
    backend.create(request("well", train, lines=4))
    backend.create(request("badly", train, code=3))
    assert ended(backend, "well") == ("Completed", "")
    assert backend.log("well") == lines(4)
    assert ended(backend, "badly") == ("Failed", "AlgorithmError: Exit Code: 3")
    folders = (backend.home / "slurm", backend.home / "jobs")
    wait_for(lambda: not [path for folder in folders for path in folder.iterdir()], "the clean-up")


def test_many_jobs_run_at_once(cluster: Cluster, backend: Backend, train: Path) -> None:
    """Each with all its lines, and Slurm is asked for all of them together: once a second at most."""
    asked, began = questions(cluster), time.monotonic()
    names = [f"job-{number}" for number in range(25)]
    for name in names:
        backend.create(request(name, train, lines=20, pause_s=0.2))
    assert {name: ended(backend, name) for name in names} == dict.fromkeys(names, ("Completed", ""))
    assert [name for name in names if backend.log(name) != lines(20)] == []
    seconds, asked = time.monotonic() - began, questions(cluster) - asked
    print(f"{len(names)} jobs in {seconds:.1f} s; squeue asked {asked} times")
    assert asked <= seconds + 5


def questions(cluster: Cluster) -> int:
    """How often the queue was asked for."""
    found = re.search(r"REQUEST_JOB_INFO\s.*count:(\d+)", cluster.call("sdiag"))
    return int(found[1]) if found else 0


def test_a_job_that_slurm_lets_wait_is_pending(cluster: Cluster, backend: Backend, train: Path) -> None:
    """With Slurm's reason, and not billed; it survives its server, and one that is stopped leaves the queue."""
    blocker = block(cluster)
    reason = re.compile(r"Pending: Training job waiting for capacity: Slurm job \d+ is PENDING, \w+")
    for name in ("patient", "impatient"):
        backend.create(request(name, train))
    wait_for(lambda: reason.fullmatch(last_message(backend, "patient")), "the reason")
    wait_for(lambda: reason.fullmatch(last_message(backend, "impatient")), "the reason")
    before = sorted(numbers(cluster))
    backend.call("sagemaker", "stop_training_job", TrainingJobName="impatient")
    assert ended(backend, "impatient") == ("Stopped", "")
    wait_for(lambda: len(numbers(cluster)) == 2, "its end in Slurm")
    backend.kill()
    backend.start()
    wait_for(lambda: "PENDING" in last_message(backend, "patient"), "the reason again")
    assert set(numbers(cluster)) < set(before), "it was submitted once"
    backend.create(request("unwanted", train))
    wait_for(lambda: reason.fullmatch(last_message(backend, "unwanted")), "the reason")
    cluster.call("scancel", "--name=unwanted")
    status, why = ended(backend, "unwanted")
    assert (status, "was cancelled in Slurm (scancel) before the job ran" in why) == ("Failed", True), why
    cluster.call("scancel", blocker)
    assert ended(backend, "patient") == ("Completed", "")
    assert backend.log("patient") == lines(3)
    waited = backend.describe("patient")["SecondaryStatusTransitions"]
    assert [each["Status"] for each in waited][:4] == ["Starting", "Pending", "Downloading", "Training"]


def test_a_stop_reaches_the_script(backend: Backend, train: Path) -> None:
    """It may save its model."""
    stop(backend, train, saves=True)
    assert backend.log("job")[-1] == "saved"


def test_a_script_that_does_not_listen_is_killed(
    cluster: Cluster, python: Path, train: Path, tmp_path: Path
) -> None:
    """When the grace period is over."""
    with own_backend(cluster, python, tmp_path, WINDTUNNEL_STOP_GRACE_SECONDS="2") as backend:
        stop(backend, train, saves=False)


def stop(backend: Backend, train: Path, *, saves: bool) -> None:
    """A job that would never end, once it has printed something."""
    backend.create(request("job", train, lines=_ENDLESS, pause_s=0.1, saves=saves))
    await_lines(backend, "job")
    backend.call("sagemaker", "stop_training_job", TrainingJobName="job")
    assert ended(backend, "job") == ("Stopped", "")


def test_scancel_from_outside_is_a_kill(cluster: Cluster, backend: Backend, train: Path) -> None:
    """The job fails and says so, whatever the script made of the signal; its lines are all there, once."""
    for name, saves in (("killed", False), ("saves", True)):
        backend.create(request(name, train, lines=_ENDLESS, pause_s=0.1, saves=saves))
        await_lines(backend, name, 5)
        cluster.call("scancel", *numbers(cluster))
        status, reason = ended(backend, name)
        assert (status, "was cancelled in Slurm (scancel)" in reason) == ("Failed", True), reason
        printed = [line for line in backend.log(name) if line != "saved"]
        assert printed == lines(len(printed))


def test_a_node_that_goes_down_is_the_platforms_fault(
    cluster: Cluster, backend: Backend, train: Path
) -> None:
    """RetryStrategy starts the job again on another node; without it the job fails and names Slurm's word."""
    mark = backend.home.with_name("mark")
    backend.create(request("again", train, lines=20, pause_s=0.1, retries=1, mark=mark))
    await_lines(backend, "again", 5)
    backend.create(request("once", train, lines=_ENDLESS, pause_s=0.1))
    await_lines(backend, "once", 5)
    nodes = set(cluster.call("squeue", "--noheader", "--format=%N").split())
    assert len(nodes) == 1, "both fit on one node"
    (node,) = nodes
    cluster.lose(node)
    try:
        status, reason = ended(backend, "once")
        assert (status, reason[:21], "NODE_FAIL" in reason) == ("Failed", "InternalServerError: ", True), (
            reason
        )
        assert ended(backend, "again") == ("Completed", "")
        first = len(backend.log("again")) - 20
        assert backend.log("again") == lines(first) + lines(20)
        assert "Restarting" in [
            each["Status"] for each in backend.describe("again")["SecondaryStatusTransitions"]
        ]
    finally:
        cluster.start_node(node)


def test_a_script_that_a_lost_node_kills_before_its_supervisor(
    cluster: Cluster, backend: Backend, train: Path
) -> None:
    """Slurm ends a lost node's processes one by one: what the supervisor then writes is a kill like any other."""
    backend.create(request("job", train, lines=_ENDLESS, pause_s=0.1))
    await_lines(backend, "job")
    (node,) = cluster.call("squeue", "--noheader", "--format=%N").split()
    (run,) = (backend.home / "slurm" / "job").glob("*/run.json")
    supervisor = json.loads(run.read_text())["pid"]
    (script,), step = processes.children(supervisor), processes.parent(supervisor)
    backend.kill()
    os.kill(step, signal.SIGSTOP)  # or it ends both itself, in either order
    cluster.lose(node)
    try:
        wait_for(lambda: not numbers(cluster), "the end of the Slurm job")
        os.kill(script, signal.SIGKILL)
        wait_for(run.with_name("exit.json").exists, "what the supervisor writes")
        assert json.loads(run.with_name("exit.json").read_text())["told"] is False
        backend.start()
        status, reason = ended(backend, "job")
        assert (status, reason[:21], "NODE_FAIL" in reason) == ("Failed", "InternalServerError: ", True), (
            reason
        )
    finally:
        os.kill(step, signal.SIGCONT)
        wait_for(
            lambda: not processes.runs(step), "the end of the step"
        )  # else the node is busy for a minute
        cluster.start_node(node)


def test_jobs_outlive_their_controller(cluster: Cluster, backend: Backend, train: Path) -> None:
    """Lines come while slurmctld is away, a job that ends then has ended well, and new ones wait for it."""
    backend.create(request("runs", train, lines=300, pause_s=0.1))
    backend.create(request("ends", train, lines=150, pause_s=0.1))
    for name in ("runs", "ends"):
        await_lines(backend, name)
    # It writes down every 5 s what it knows; one that is killed before gives a job's number away again.
    begun = time.time()
    wait_for(lambda: cluster.saved_at > begun, "what slurmctld writes down")
    cluster.kill("slurmctld")
    try:
        backend.create(request("waits", train))
        assert ended(backend, "ends") == ("Completed", "")
        wait_for(lambda: "Slurm's controller does not answer" in last_message(backend, "waits"), "the reason")
    finally:
        cluster.start_controller()
    assert [ended(backend, name) for name in ("runs", "waits")] == [("Completed", "")] * 2
    assert [backend.log(name) for name in ("ends", "runs", "waits")] == [lines(150), lines(300), lines(3)]


def test_jobs_outlive_their_server(backend: Backend, train: Path) -> None:
    """Killed again and again while jobs are submitted, start, run and end: none runs twice, no line is lost."""
    names = [f"job-{number}" for number in range(12)]
    for number, name in enumerate(names):
        backend.create(request(name, train, lines=10 + 5 * number, pause_s=0.1))
        if number % 2:
            backend.kill()
            backend.start()
    for _ in range(4):
        time.sleep(0.7)
        backend.kill()
        backend.start()
    assert {name: ended(backend, name) for name in names} == dict.fromkeys(names, ("Completed", ""))
    for number, name in enumerate(names):
        assert backend.log(name) == lines(10 + 5 * number)


def test_a_submission_that_nobody_wrote_down_is_found(cluster: Cluster, python: Path, tmp_path: Path) -> None:
    """By the next server, in Slurm's queue: the job is not submitted again."""
    given = {"SLURM_CONF": str(cluster.configuration), "PATH": os.environ["PATH"]}
    settings = SlurmSettings(tmp_path, Interpreter(python, given))
    block(cluster)
    try:
        assert "PENDING" in str(SlurmRunner(settings).reserve("job", ["algo-1"]))
        (tmp_path / "slurm" / "job" / "number").unlink()
        assert "PENDING" in str(SlurmRunner(settings).reserve("job", ["algo-1"]))
        assert len(numbers(cluster)) == 2
        (tmp_path / "slurm" / "job" / "number").unlink()
        SlurmRunner(settings).remove("job")
        wait_for(lambda: len(numbers(cluster)) == 1, "its end in Slurm")
    finally:
        cluster.call("scancel", "--me")
        cluster.wait_until_idle()


def test_hosts_find_each_other_by_name(backend: Backend, train: Path) -> None:
    """As in containers: each is called by its name, and knows those of the others."""
    backend.create(request("meeting", train.with_name("meet.py"), hosts=2))
    assert ended(backend, "meeting") == ("Completed", ""), backend.log("meeting")
    assert backend.log("meeting") == ["met algo-2 of 127.0.0.1"]


def test_a_home_that_nodes_do_not_share_is_named(
    cluster: Cluster, python: Path, train: Path, tmp_path: Path
) -> None:
    """By the job that fails of it, and by `windtunnel doctor`."""
    node = NODES[-1]
    cluster.kill(node)
    home = tmp_path / "home"
    home.mkdir()
    cluster.start_node(node, hidden=home)
    try:
        cluster.wait_until_idle()
        arguments = f"--nodelist={node}"
        with own_backend(cluster, python, tmp_path, WINDTUNNEL_SLURM_ARGUMENTS=arguments) as backend:
            backend.create(request("lonely", train))
            status, reason = ended(backend, "lonely")
            assert status == "Failed"
            assert f"WINDTUNNEL_HOME ({home}) must be on a file system" in reason
            shared = doctor(home, python, arguments, cluster.configuration)
            assert not shared.ok
            assert f"nothing that it writes to {home} is seen here" in shared.detail
    finally:
        cluster.kill(node)
        cluster.start_node(node)
        cluster.wait_until_idle()


def doctor(home: Path, python: Path, arguments: str, configuration: Path) -> Check:
    """What it finds of the shared folder."""
    given = {
        "SLURM_CONF": str(configuration),
        "WINDTUNNEL_SIM_PYTHON": str(python),
        "PATH": os.environ["PATH"],
    }
    given["WINDTUNNEL_SLURM_ARGUMENTS"] = arguments
    interpreter, slurm, shared = runner_kind("slurm").checks(
        Settings(home, "none:1", "slurm", environment=given)
    )
    assert interpreter.ok and slurm.ok, (interpreter, slurm)
    return shared


def test_doctor_runs_a_job(cluster: Cluster, python: Path, tmp_path: Path) -> None:
    """And sees what it writes."""
    assert doctor(tmp_path, python, "", cluster.configuration).ok
    assert list(tmp_path.iterdir()) == []


def test_what_slurm_does_not_take_is_said(
    cluster: Cluster, python: Path, train: Path, tmp_path: Path
) -> None:
    """In Slurm's words, with the settings to look at."""
    with own_backend(cluster, python, tmp_path, WINDTUNNEL_SLURM_PARTITION="nowhere") as backend:
        backend.create(request("refused", train))
        status, reason = ended(backend, "refused")
        assert status == "Failed"
        assert "nvalid partition" in reason and "WINDTUNNEL_SLURM_" in reason
