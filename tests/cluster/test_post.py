"""AWS's post on the UltraCluster, command by command, with three nodes of up to sixteen and a tiny model."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import SHOW_NODES, Cluster
from tests.fakes.cluster import POST

pytestmark = pytest.mark.docker

_SCRIPTS = Path(__file__).parent / "scripts"
_NODE = "compute1-dy-queue1-i1-"
_NODES = 3
_CORES = 2
_STEPS = 3
_PASSES = 2
"""Of an optimizer step, on three nodes."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Of the post; no node is up before a job needs it. The tests go on where the one before has ended."""
    text = POST.replace("MinCount: 1\n", "MinCount: 0\n")
    cluster = Cluster(tmp_path_factory.mktemp("post"), "My-PCluster", text)
    began = time.monotonic()
    cluster.create()
    print(f"CREATE_COMPLETE after {time.monotonic() - began:.1f} s")
    try:
        yield cluster
    finally:
        cluster.delete()


@pytest.fixture(scope="module")
def compiled(cluster: Cluster) -> str:
    """The number of the job that compiles: it is what brings the nodes."""
    for script in _SCRIPTS.iterdir():
        shutil.copy2(script, cluster.folder / "home" / "ubuntu" / script.name)
    wrapped = "until [ -e go ]; do sleep 0.2; done; srun neuron_parallel_compile ./run_tiny.sh"
    return cluster.sbatch(f'--exclusive --nodes={_NODES} --wrap "{wrapped}"')


@pytest.fixture(scope="module")
def has_compiled(cluster: Cluster, compiled: str) -> str:
    """The number of that job, which was looked at while it waited to begin, and has ended."""
    cluster.ssh("touch go")
    assert cluster.wait_for_job(compiled) == ["COMPLETED", str(_NODES), "0:0"], output(cluster, compiled)
    return compiled


@pytest.fixture(scope="module")
def trained(cluster: Cluster, has_compiled: str) -> str:
    """The number of the job that trains, submitted when the other has ended, while its nodes are up."""
    number = cluster.sbatch(f'--hold --exclusive --nodes={_NODES} --wrap "srun ./run_tiny.sh"')
    assert f" {number} " in cluster.ssh(f"squeue && scontrol release {number}")
    return number


def output(cluster: Cluster, number: str) -> str:
    """slurm-N.out."""
    return cluster.ssh(f"tail -n 10000 slurm-{number}.out")


def test_the_cluster_is_described(cluster: Cluster) -> None:
    """As ParallelCluster does it, with no compute node yet."""
    found = cluster.described()
    assert (found["clusterStatus"], found["computeFleetStatus"]) == ("CREATE_COMPLETE", "RUNNING")
    assert found["headNode"]["state"] == "running" and found["headNode"]["privateIpAddress"]
    instances = cluster.pcluster("describe-cluster-instances")["instances"]
    assert [each["nodeType"] for each in instances] == ["HeadNode"]
    assert cluster.nodes() == {f"{_NODE}{number}": "idle~" for number in range(1, 17)}


def test_a_job_brings_nodes(cluster: Cluster, compiled: str) -> None:
    """Under Slurm's eyes; each is a simulated trn1.32xlarge that ssh reaches without a password."""
    names = [f"{_NODE}{number}" for number in range(1, _NODES + 1)]
    cluster.ssh_until(f"[ $(squeue -h -j {compiled} -t R | wc -l) = 1 ]")
    cluster.ssh_until(f"[ $(sinfo -h -N -n {','.join(names)} -o %T | grep -c '[#~%]') = 0 ]")
    assert compiled in cluster.ssh("squeue")
    assert cluster.ssh("hostname", names[-1]) == f"{names[-1]}\n"
    between = f"ssh {names[1]} 'hostname && /opt/aws/neuron/bin/neuron-ls -j' && touch /fsx/seen"
    host, _, listed = cluster.ssh(f'ssh {names[0]} "{between}"').partition("\n")
    assert host == names[1]
    assert sum(device["nc_count"] for device in json.loads(listed)) == _CORES
    assert cluster.ssh("ls /fsx", names[2]) == "seen\n"


def test_graphs_are_compiled_on_every_node(cluster: Cluster, has_compiled: str) -> None:
    """Into the cache of its own that the script names, in the shared home."""
    said = output(cluster, has_compiled)
    assert len(re.findall(r"Total graphs: [1-9]", said)) == _NODES, said
    assert len(cluster.ssh("ls ~/neuron_cache/tiny").split()) == _NODES


def test_all_cores_of_all_nodes_train_as_one(cluster: Cluster, trained: str) -> None:
    """Equal gradients and parameters on all of them after every step."""
    assert cluster.wait_for_job(trained) == ["COMPLETED", str(_NODES), "0:0"], output(cluster, trained)
    printed = re.findall(
        r"rank (\d+) of (\d+) step (\d+) gradients (\S+) parameters (\S+)", output(cluster, trained)
    )
    world = _NODES * _CORES
    assert sorted((int(rank), int(step)) for rank, _, step, _, _ in printed) == [
        (rank, step) for rank in range(world) for step in range(_STEPS)
    ]
    assert {int(count) for _, count, _, _, _ in printed} == {world}
    sums = {(step, gradients, parameters) for _, _, step, gradients, parameters in printed}
    assert len(sums) == _STEPS, sums
    assert len({parameters for _, _, parameters in sums}) == _STEPS, "it learns"


def test_a_job_leaves_its_results(cluster: Cluster, trained: str) -> None:
    """results.json, a log a node, its line in sacct, and what the simulator has counted on each node."""
    cluster.wait_for_job(trained)
    results = json.loads(cluster.ssh(f"cat output_{trained}/results.json"))["results"]
    (throughput,) = results["metrics"]
    assert throughput["MetricName"] == "Throughput" and throughput["MeasuredValue"] > 0
    logs = [f"log_tiny_{node}_{_NODES}" for node in range(_NODES)]
    assert cluster.ssh(f"ls output_{trained}").split() == [*logs, "results.json"]
    assert "trn1.32xlarge, 2 cores" in output(cluster, trained)
    assert f"{trained} " in cluster.ssh(f"sacct -j {trained}")
    counted = cluster.folder / "jobs" / trained
    assert sum(any(path.rglob("*")) for path in counted.iterdir()) == _NODES


def test_the_bill_of_both_jobs(cluster: Cluster, has_compiled: str, trained: str) -> None:
    """Node-seconds of all nodes; the first job says that it only compiled, the other what all nodes counted."""
    cluster.wait_for_job(trained)
    compiling, training = cluster.report(has_compiled), cluster.report(trained)
    for found in (compiling, training):
        (bill,) = found["bill"]
        assert (found["job"]["state"], bill["nodes"]) == ("COMPLETED", _NODES)
        assert bill["node_seconds"]["job"] == _NODES * found["job"]["seconds"] > 0
        assert bill["ec2_usd"]["job"] > 0 and bill["sagemaker_usd"]["job"] > 0
        assert {node["cores"] for node in found["nodes"]} == {_CORES}
        assert len(found["nodes"]) == _NODES
    assert compiling["job"]["compiled_only"] and compiling["compilation"]["seconds"] > 0
    assert not training["job"]["compiled_only"]
    # Its batches come from no loader: they are what it sends to the device.
    assert training["unavailable"] is None
    assert training["measured"]["optimizer_steps"] == _STEPS
    assert training["measured"]["steps"] == _STEPS * _PASSES


def test_idle_nodes_leave(cluster: Cluster, trained: str) -> None:
    """After ScaledownIdletime, which is short here; the head node stays."""
    cluster.wait_for_job(trained)
    cluster.ssh_until(f"[ $({SHOW_NODES} | grep -cv 'idle~$') = 0 ]")
    assert set(cluster.nodes().values()) == {"idle~"}
    instances = cluster.pcluster("describe-cluster-instances")["instances"]
    assert [each["nodeType"] for each in instances] == ["HeadNode"]


def test_deleting_leaves_nothing(cluster: Cluster) -> None:
    """No container, no network, no file."""
    began = time.monotonic()
    cluster.delete()
    print(f"deleted after {time.monotonic() - began:.1f} s")
    assert cluster.leftovers() == []
