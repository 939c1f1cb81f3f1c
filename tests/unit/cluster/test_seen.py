"""What a cluster's folder tells, also where its nodes have written what they like."""

from __future__ import annotations

import fcntl
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.fakes.cluster import POST, cluster_at, submit
from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.record import ClusterRecord
from windtunnel_local.cluster.seen import ClusterSeen, every, one

STATIC, DYNAMIC = "compute1-st-queue1-i1-1", "compute1-dy-queue1-i1-1"


def ended(job: int, state: str = "COMPLETED", nodes: str = DYNAMIC, end: str = "2026-11-23T02:45:12") -> str:
    """A line of Slurm's file of completed jobs."""
    return (
        f"JobId={job} UserId=ubuntu(1000) Name=train[a,b] JobState={state} Partition=compute1 TimeLimit=UNLIMITED "
        f"StartTime=2026-11-23T02:40:00 EndTime={end} NodeList={nodes} NodeCnt=1 WorkDir=/home/ubuntu "
        f"SubmitTime=2026-11-23T02:39:00 ExitCode=0:0 \n"
    )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Of a cluster with a static node and a dynamic one that run, and another that has left."""
    made = cluster_at(tmp_path)
    for node in (STATIC, DYNAMIC, "compute1-dy-queue1-i1-2"):
        node_log.append(made.folder, node, "trn1.32xlarge", "up")
    node_log.append(made.folder, "compute1-dy-queue1-i1-2", "trn1.32xlarge", "down")
    return made


def look(layout: Layout) -> ClusterSeen:
    """At the one cluster."""
    (found,) = every(layout.folder.parents[1])
    return found


def test_queues_and_nodes(layout: Layout) -> None:
    """Those that run of those that may; a static one that does not run is named."""
    seen = look(layout)
    assert [(queue.name, queue.up, queue.most) for queue in seen.queues] == [("compute1", 2, 16)]
    assert [(node.name, node.static, node.since is not None) for node in seen.nodes] == [
        (STATIC, True, True),
        (DYNAMIC, False, True),
    ]
    node_log.append(layout.folder, STATIC, "trn1.32xlarge", "down")
    assert look(layout).nodes[0].since is None


def test_jobs_that_ended_run_and_wait(layout: Layout) -> None:
    """One that runs has made its folders; one that waits has a script alone; the newest first."""
    layout.completed_jobs.write_text(ended(1) + ended(2, "CANCELLED"))
    submit(layout, 2, "is not yet forgotten")
    submit(layout, 3, "runs", (STATIC, DYNAMIC))
    submit(layout, 4, "waits")
    (layout.jobs / "5" / DYNAMIC).mkdir(parents=True)  # by srun alone
    seen = look(layout)
    assert [(job.number, job.name, job.state, len(job.nodes)) for job in seen.jobs] == [
        (5, "", "RUNNING", 1),
        (4, "waits", "PENDING", 0),
        (3, "runs", "RUNNING", 2),
        (2, "train[a,b]", "CANCELLED", 1),
        (1, "train[a,b]", "COMPLETED", 1),
    ]
    assert (seen.running, seen.pending, seen.older) == (2, 1, False)
    assert [node.jobs for node in seen.nodes] == [(3,), (3, 5)]
    assert [job.queue for job in seen.jobs[:3]] == ["compute1", "", "compute1"]
    assert seen == look(layout)


def test_a_job_whose_node_was_lost_goes_back_to_the_queue(layout: Layout) -> None:
    """Its script is still there; once it has begun anew it runs, since then."""
    layout.completed_jobs.write_text(ended(3, "NODE_FAIL"))
    submit(layout, 3, "again", (DYNAMIC,))
    before = datetime(2026, 11, 23, 2, 40, tzinfo=timezone.utc).timestamp()
    for folder in (layout.jobs / "3", layout.jobs / "3" / DYNAMIC):
        os.utime(folder, (before, before))
    assert [run.state for run in look(layout).runs] == ["NODE_FAIL", "PENDING"]
    again = datetime(2026, 11, 23, 2, 50, tzinfo=timezone.utc)
    os.utime(layout.jobs / "3" / DYNAMIC, (again.timestamp(), again.timestamp()))
    last = look(layout).runs[-1]
    assert (last.state, last.started, last.nodes) == ("RUNNING", again, (DYNAMIC,))


def test_whether_somebody_looks_after_it(layout: Layout) -> None:
    """As long as its process holds the lock, and without taking it."""
    assert look(layout).forsaken
    with layout.lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not look(layout).forsaken
        assert not look(layout).forsaken
    assert look(layout).forsaken
    ClusterRecord(layout.folder).move_to("DELETE_IN_PROGRESS")
    ClusterRecord(layout.folder).move_to("DELETE_FAILED", "a disk is full")
    assert not look(layout).forsaken  # its process has left for good


def test_files_that_cannot_be_read(layout: Layout) -> None:
    """Say so in the cluster's place; the others are seen."""
    home = layout.folder.parents[1]
    ClusterRecord(layout.folder).configuration_file.write_text("Region: [")
    other = cluster_at(home, "other")
    (other.folder / "cluster.json").write_text("{")
    cluster_at(home, "third")
    found = {seen.name: seen for seen in every(home)}
    assert found["post"].state is not None
    assert "configuration.yaml:1" in found["post"].problem
    assert found["other"].state is None
    assert "cluster.json is damaged" in found["other"].problem
    assert found["third"].problem == ""
    assert one(home, "none") is None
    assert one(home, "../clusters/post") is None


@pytest.mark.parametrize(
    "line",
    [
        "JobId=" + "9" * 5000 + " JobState=RUNNING",
        "JobId=7 Name=x JobId=² JobState=COMPLETED ",
        "JobId=7 JobState=RUNNING NodeList=a[1-100000],b[1-100000],c[1-100000] ",
        "JobId=7 JobState=RUNNING NodeList=" + "a" * 9000 + "[1-99999] ",
        "JobId=7 JobState=RUNNING NodeList=a[٣-٩٩٩٩٩٩] ",
        "x" * 400_000,
    ],
    ids=["number", "digit", "nodes", "names", "digits", "line"],
)
def test_lines_of_a_malicious_node(layout: Layout, line: str) -> None:
    """Neither fill the memory nor a processor, nor hide the job that came after."""
    layout.completed_jobs.write_text(f"{line}\n{ended(8)}")
    assert [job.number for job in look(layout).jobs] == [8]


def test_files_of_a_malicious_node(layout: Layout, tmp_path: Path) -> None:
    """A pipe is not waited for, a link not followed, an endless file not read whole."""
    secret = tmp_path / "secret"
    secret.write_text(ended(1))
    layout.completed_jobs.symlink_to(secret)
    assert look(layout).jobs == []
    layout.completed_jobs.unlink()
    os.mkfifo(layout.completed_jobs)
    assert look(layout).jobs == []
    layout.completed_jobs.unlink()
    with layout.completed_jobs.open("w") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write("\n" + ended(9))
    seen = look(layout)
    assert [job.number for job in seen.jobs] == [9]
    assert seen.older


def test_of_many_jobs_the_newest(layout: Layout) -> None:
    """A job of which only a folder is left is none that runs where not all that ended are read."""
    layout.completed_jobs.write_text("".join(ended(job) for job in range(1, 5000)))
    (layout.jobs / "1" / DYNAMIC).mkdir(parents=True)
    seen = look(layout)
    assert seen.older
    assert seen.jobs[0].number == 4999
    assert seen.running == 0


def test_the_moment_of_its_creation(layout: Layout) -> None:
    """As a time."""
    created = look(layout).created
    assert created is not None
    assert timedelta(0) <= datetime.now(timezone.utc) - created < timedelta(minutes=1)
    assert look(layout).text == POST
