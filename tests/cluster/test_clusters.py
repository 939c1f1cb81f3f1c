"""What happens to clusters: two at once, lost nodes and processes, changes. Their jobs import nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator

import docker
import pytest

from tests.cluster.cluster import Cluster, until
from windtunnel_local.cluster.nodes import FOLDER_LABEL, NODE_LABEL

pytestmark = pytest.mark.docker

_FILE = """\
Region: us-east-1
Image:
  Os: alinux2
HeadNode:
  InstanceType: c5.large
  Networking:
    SubnetId: subnet-0123456789abcdef0
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: q
      ComputeResources:
        - Name: r
          InstanceType: trn1.32xlarge
          MinCount: 1
          MaxCount: 2
      Networking:
        SubnetIds:
          - subnet-0123456789abcdef0
    - Name: small
      ComputeResources:
        - Name: one
          InstanceType: trn1.2xlarge
          MinCount: 0
          MaxCount: 1
      Networking:
        SubnetIds:
          - subnet-0123456789abcdef0
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """Of one file, in one home, made side by side."""
    folder = tmp_path_factory.mktemp("two")
    clusters = Cluster(folder, "first", _FILE), Cluster(folder, "second", _FILE)
    try:
        for cluster in clusters:
            cluster.pcluster("create-cluster", "-c", str(cluster.file))
        for cluster in clusters:
            cluster.wait_for(clusterStatus="CREATE_COMPLETE")
        yield clusters
    finally:
        for cluster in clusters:
            cluster.delete()


@pytest.fixture
def first(two: tuple[Cluster, Cluster]) -> Cluster:
    return two[0]


@pytest.fixture
def second(two: tuple[Cluster, Cluster]) -> Cluster:
    return two[1]


def _state(node: str, state: str) -> str:
    """The condition that a node is in a state, for the shell."""
    return f"[ $(sinfo -h -N -n {node} -o %T) = {state} ]"


def kill(cluster: Cluster, node: str) -> None:
    """The node's container, as an engine that dies would."""
    client = docker.from_env()
    try:
        labels = [f"{FOLDER_LABEL}={cluster.folder}", f"{NODE_LABEL}={node}"]
        (container,) = client.containers.list(filters={"label": labels})
        container.kill()
    finally:
        client.close()


def address(cluster: Cluster, host: str) -> str:
    """Of a host of the cluster."""
    return cluster.ssh(f"getent hosts {host}").split()[0]


def test_clusters_with_equal_nodes_do_not_meet(first: Cluster, second: Cluster) -> None:
    """Each runs its own jobs on its own nodes, and cannot reach the other's."""
    for cluster in (first, second):
        cluster.ssh(f"echo {cluster.name} > mark && srun -N1 cat mark > answer")
        assert cluster.ssh("cat answer", "q-st-r-1") == f"{cluster.name}\n"
    theirs = address(second, "q-st-r-1")
    assert theirs != address(first, "q-st-r-1")
    reach = f"timeout 2 bash -c '</dev/tcp/{theirs}/22' 2>/dev/null && echo met || echo apart"
    # While another test makes a network, the engine takes the rule that keeps them apart out and in again.
    assert "apart\n" in (first.ssh(reach) for _ in range(3))


def test_queues_are_partitions_of_other_instances(first: Cluster) -> None:
    """A job of the second queue brings a node of its type."""
    said = first.ssh("srun -p small env")
    assert "WINDTUNNEL_INSTANCE_TYPE=ml.trn1.2xlarge\n" in said
    assert re.search(r"SLURMD_NODENAME=small-dy-one-1\n", said)


def test_a_node_says_where_it_is(first: Cluster) -> None:
    """Its metadata have the region of the cluster's file."""
    ask = "curl -s http://169.254.169.254/latest/meta-data/placement/region"
    assert first.ssh(ask, "q-st-r-1") == "us-east-1"


def test_a_node_that_does_not_run_has_an_address(first: Cluster) -> None:
    """At which nobody is: slurmctld would ask ten times, and let all others wait. One that runs has its own."""
    nobody = "255.255.255.255"
    first.ssh_until(_state("q-dy-r-1", "idle~"))
    assert address(first, "q-dy-r-1") == nobody
    assert address(first, "q-st-r-1") not in (nobody, address(first, "head"))
    # While it has a job: without one it soon leaves.
    running = first.ssh("salloc --quiet --wait-all-nodes=1 -N 2 getent hosts q-dy-r-1").split()[0]
    assert running not in (nobody, address(first, "q-st-r-1"))


def test_jobs_of_an_array_are_listed_without_a_complaint(first: Cluster) -> None:
    """And each has a report."""
    number = first.sbatch('--array=0-1 -w q-st-r-1 --wrap "srun hostname"')
    first.ssh_until(f'[ -z "$(squeue -h -j {number} 2>&1)" ]')
    assert "error" not in first.ssh("sacct -n -P -o JobID,State 2>&1")
    assert {first.report(f"{number}_{task}")["job"]["state"] for task in (0, 1)} == {"COMPLETED"}


def test_the_command_of_ssh_can_be_pasted(first: Cluster) -> None:
    """Whatever is in its words: it runs as `pcluster ssh` itself would."""
    command = first.pcluster("ssh", "--dryrun", "true", "echo", "'a  b'", "; exit 3")["command"]
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert (done.stdout, done.returncode) == ("a  b\n", 3), done


def test_a_job_in_a_cluster_cannot_change_it(first: Cluster) -> None:
    """The socket that Slurm has there hears of nodes alone; no node has rights over its network."""
    ask = (
        "import json, socket; s = socket.socket(socket.AF_UNIX); s.connect('/opt/windtunnel/orders/socket'); "
        "s.sendall(json.dumps({'do': 'delete'}).encode() + b'\\n'); print(s.recv(1000).decode())"
    )
    assert "cannot be ordered here" in first.ssh(f'python3 -c "{ask}"')
    rights = first.ssh("sudo grep CapEff /proc/self/status", "q-st-r-1").split()[1]
    net_admin, sys_admin, sys_module = 12, 21, 16
    assert not [bit for bit in (net_admin, sys_admin, sys_module) if int(rights, 16) >> bit & 1]
    assert "ec2-user" in first.ssh("id", "q-st-r-1")


def test_a_killed_background_process_is_caught_up_with(first: Cluster) -> None:
    """Slurm orders a node while nobody listens; the next command starts the process, which finds what it missed."""
    first.ssh_until(_state("q-dy-r-1", "idle~"))
    os.kill(first.fleet_process(), signal.SIGKILL)
    number = first.sbatch('--nodes=2 --wrap "srun hostname"')
    assert first.pcluster("describe-cluster-instances")["instances"]
    assert first.wait_for_job(number) == ["COMPLETED", "2", "0:0"]
    assert sorted(first.ssh(f"cat slurm-{number}.out").split()) == ["q-dy-r-1", "q-st-r-1"]


def test_a_job_outlives_the_head_node(second: Cluster) -> None:
    """The controller comes back with what it knew; the job was not started twice."""
    number = second.sbatch(
        '-w q-st-r-1 --wrap "echo begun; while [ ! -e end ]; do sleep 0.2; done; echo ended"'
    )
    second.ssh_until(f"grep -q begun slurm-{number}.out")
    # What it knows, it writes down every 5 s, or when it is asked to end.
    second.ssh("sudo pkill -TERM -x slurmctld; while pgrep -x slurmctld >/dev/null; do sleep 0.1; done; true")
    kill(second, "head")
    until(lambda: second.log().count("the head node answers") == 2, second.log)
    second.ssh("touch end")
    assert second.wait_for_job(number) == ["COMPLETED", "1", "0:0"]
    assert second.ssh(f"cat slurm-{number}.out") == "begun\nended\n"


def test_a_lost_node_is_replaced(second: Cluster) -> None:
    """Its job goes back to the queue, and the node takes jobs again."""
    number = second.sbatch('-w q-st-r-1 --wrap "sleep 1000"')
    second.ssh_until("squeue | grep -q ' R '")
    kill(second, "q-st-r-1")
    second.ssh_until("squeue | grep -q '(BeginTime)'")
    second.ssh(f"scancel {number}")
    second.ssh_until(_state("q-st-r-1", "idle"))
    assert second.ssh("srun -w q-st-r-1 hostname") == "q-st-r-1\n"


def test_a_fleet_stops_changes_and_starts(second: Cluster) -> None:
    """Stopped, no node runs and no job is taken; an update brings more nodes."""
    second.pcluster("update-compute-fleet", "--status", "STOP_REQUESTED")
    second.wait_for(computeFleetStatus="STOPPED")
    assert len(second.pcluster("describe-cluster-instances")["instances"]) == 1
    second.file.write_text(_FILE.replace("MaxCount: 2", "MaxCount: 3"))
    second.pcluster("update-cluster", "-c", str(second.file))
    second.wait_for(clusterStatus="UPDATE_COMPLETE")
    assert "q-dy-r-2" in second.nodes()
    assert "Required partition not available" in second.ssh("sbatch --wrap hostname 2>&1 || true")
    second.pcluster("update-compute-fleet", "--status", "START_REQUESTED")
    second.wait_for(computeFleetStatus="RUNNING")
    number = second.sbatch('--nodes=3 --wrap "srun hostname"')
    assert second.wait_for_job(number) == ["COMPLETED", "3", "0:0"]


def test_both_leave_nothing(two: tuple[Cluster, Cluster]) -> None:
    """No container, no network, no file; what root has written in a node is no hindrance."""
    two[0].ssh("sudo touch /home/roots")
    for cluster in two:
        cluster.delete()
        assert cluster.leftovers() == []
