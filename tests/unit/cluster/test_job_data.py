"""All that is known of a Slurm job, from Slurm's own lines and from what a job of AWS's BERT script counted."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.cluster import POST
from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.configuration import read
from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.job_data import JobNotFound, job_document
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.slurm_jobs import expand, read_jobs

RECORDED = Path(__file__).with_name("recorded")
"""Of 2 cores: dp_bert_large_hf_pretrain_hdf5.py of aws-neuron-samples, unmodified, with a BERT of 2 layers (173,546
parameters): batch 16, sequence 128, 4 passes an optimizer step, 6 steps, in bf16."""
NODES = ("compute1-st-queue1-i1-1", "compute1-dy-queue1-i1-1")
ENDED = (
    "JobId=3 UserId=ubuntu(1000) GroupId=ubuntu(1000) Name=my job JobState=COMPLETED Partition=compute1 "
    "TimeLimit=UNLIMITED StartTime=2026-11-23T02:40:00 EndTime=2026-11-23T02:45:12 "
    "NodeList=compute1-dy-queue1-i1-1,compute1-st-queue1-i1-1 NodeCnt=2 ProcCnt=256 WorkDir=/home/ubuntu "
    "ReservationName= Tres=cpu=256 Account= QOS= WcKey= Cluster=unknown SubmitTime=2026-11-23T02:39:00 "
    "EligibleTime=2026-11-23T02:39:00 DerivedExitCode=0:0 ExitCode=0:0 \n"
)
RUNS = (
    "JobId=4 JobName=wrap UserId=ubuntu(1000) GroupId=ubuntu(1000) MCS_label=N/A JobState=RUNNING Reason=None "
    "NtasksPerN:B:S:C=0:0:*:* CPUs/Task=1 SubmitTime=2026-11-23T02:50:00 StartTime=2026-11-23T02:50:05 "
    "EndTime=2027-11-23T02:50:05 Partition=compute1 NodeList=compute1-dy-queue1-i1-[1-2] NumNodes=2\n"
)
WAITS = (
    "JobId=5 JobName=wrap JobState=PENDING Reason=Resources SubmitTime=2026-11-23T02:51:00 StartTime=Unknown "
    "EndTime=Unknown Partition=compute1 NodeList= NumNodes=16\n"
)
NOW = datetime(2026, 11, 23, 3, 0, tzinfo=timezone.utc)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a cluster on which job 3 trained on one of its two nodes."""
    layout = Layout(tmp_path / "post")
    layout.slurm_state.mkdir(parents=True)
    layout.completed_jobs.write_text(ENDED)
    shutil.copytree(RECORDED, layout.jobs / "3" / NODES[0])
    (layout.jobs / "3" / NODES[1]).mkdir()
    for node in NODES:
        up = datetime(2026, 11, 23, 2, 39, 30, tzinfo=timezone.utc)
        node_log.append(layout.folder, node, "trn1.32xlarge", "up", up)
    return layout.folder


def document(folder: Path, job: int | str, shown: str = "") -> dict[str, Any]:
    configuration = read(POST, "cluster.yaml")
    return job_document(folder, configuration, str(job), shown, NOW)


def test_names_of_many_nodes() -> None:
    """As Slurm writes them."""
    assert expand("a-[1-3,7],b,c[08-10]") == ("a-1", "a-2", "a-3", "a-7", "b", "c08", "c09", "c10")
    assert expand("") == ()


def test_slurms_lines() -> None:
    """A job that runs has no end, whatever its time limit; one that waits has neither nodes nor a start."""
    ended, runs, waits = read_jobs(f"{ENDED}no job at all\n{RUNS}{WAITS}")
    assert (ended.number, ended.name, ended.state, ended.queue) == (3, "my job", "COMPLETED", "compute1")
    assert ended.nodes == (NODES[1], NODES[0])
    assert ended.started is not None and ended.ended is not None
    assert (ended.ended - ended.started).total_seconds() == 312
    assert (runs.state, runs.ended) == ("RUNNING", None)
    assert runs.nodes == ("compute1-dy-queue1-i1-1", "compute1-dy-queue1-i1-2")
    assert (waits.state, waits.started, waits.nodes) == ("PENDING", None, ())


def test_digits_that_are_no_numbers_hide_no_other_job() -> None:
    """A job's name is in its line, as its user chose it."""
    assert [run.number for run in read_jobs(f"JobId=8 JobName=x JobId=² JobState=RUNNING\n{RUNS}")] == [4]
    assert expand("a-[²]") == ()


@pytest.mark.timeout(30)
def test_a_name_of_spaces_is_read_at_once() -> None:
    """No pattern takes the square of their number."""
    name = f"a{' ' * 1_000_000}b{'c' * 1_000_000}"
    (run,) = read_jobs(f"JobId=8 JobState=RUNNING JobName={name} Partition=q   ")
    assert (run.name, run.queue) == (name, "q")


def test_a_job_of_awss_script(folder: Path) -> None:
    """The optimizer's steps, which have a graph of their own there, belong to the fourth pass of each."""
    found = document(folder, 3, RUNS)
    assert (found["job"]["state"], found["cluster"]["region"]) == ("COMPLETED", "us-west-2")
    counters = found["counters"]
    assert (counters["instance_type"], counters["instance_count"], counters["world_size"]) == (
        "ml.trn1.32xlarge",
        1,
        2,
    )
    train = counters["train"]
    assert (train["steps"], train["samples"], train["samples_per_step_per_core"]) == (24, 24 * 16 * 2, 16)
    assert train["updates"]["steps"] == 6
    assert train["updates"]["collectives"] == train["collectives"]
    assert train["collectives"]["all_reduce"]["bytes"] == 6 * (173_546 * 2 + 4)
    assert train["updates"]["least_trace_seconds"] > 0
    assert counters["seconds"]["training_total"] == 312
    (counted,) = found["counted"]
    assert (counted["node"], counted["cores"], counted["training_steps"]) == (NODES[0], 2, 24)


def test_nodes_tell_when_they_ran_and_for_which_jobs(folder: Path) -> None:
    """Those of the configuration, static or dynamic; a job that runs has no end."""
    found = {node["node"]: node for node in document(folder, 3, RUNS)["nodes"]}
    assert [found[node]["static"] for node in NODES] == [True, False]
    assert found[NODES[0]]["up"] == [["2026-11-23T02:39:30Z", None]]
    assert [run["job"] for run in found[NODES[1]]["jobs"]] == [3, 4]
    assert found[NODES[1]]["jobs"][1]["ended"] is None
    assert found["compute1-dy-queue1-i1-2"]["up"] == []


def test_jobs_without_counters(folder: Path) -> None:
    """One that runs `hostname`, and one that waits, have none."""
    assert document(folder, 4, RUNS)["counters"] is None
    waits = document(folder, 5, RUNS + WAITS)
    assert (waits["job"]["started"], waits["counters"], waits["counted"]) == (None, None, [])


def test_counters_that_a_script_broke_are_named(folder: Path) -> None:
    """They lie where the job's user can write; it is no failure of the command."""
    record = {"kind": "graph", "graph": "g", "flops": {"fp32": -1e30}}
    for counted in (folder / "jobs" / "3" / NODES[0]).glob("rank-*.jsonl"):
        counted.write_text(counted.read_text() + json.dumps(record) + "\n")
    with pytest.raises(ClusterError, match=r"job post/3 counted cannot be read: .*flops"):
        document(folder, 3)


def test_a_task_of_an_array_goes_by_both_of_its_names(folder: Path) -> None:
    """Slurm's number of the last one is the array's."""
    tasks = "".join(
        ENDED.replace("JobId=3", f"JobId={number} ArrayJobId=7 ArrayTaskId={task}")
        for number, task in ((8, 0), (9, 1), (7, 2))
    )
    Layout(folder).completed_jobs.write_text(ENDED + tasks)
    numbers = {"7_0": 8, "8": 8, "7_1": 9, "7_2": 7, "7": 7}
    assert {name: document(folder, name)["job"]["id"] for name in numbers} == numbers
    for name in ("7_3", "7_", "0_7", "78", "../3"):
        with pytest.raises(JobNotFound, match=r"Its jobs: 3, 7_2, 7_0, 7_1\."):
            document(folder, name)


def test_a_job_that_nobody_knows(folder: Path) -> None:
    """The message lists those that are known."""
    with pytest.raises(JobNotFound, match=r"has no job 9\. Its jobs: 3, 4\."):
        document(folder, 9, RUNS)


def test_what_the_controller_still_shows_is_not_counted_twice(folder: Path) -> None:
    """A job that has just ended stands in its file, and in the controller's memory."""
    same = ENDED.replace("Name=", "JobName=")
    assert len(document(folder, 3, same)["runs"]) == 1
