"""slurm.conf: what ParallelCluster's file means, written for Slurm."""

from __future__ import annotations

from windtunnel_local.cluster.configuration import ClusterConfiguration, ComputeResource, Queue
from windtunnel_local.cluster.slurm_conf import slurm_conf


def post(*queues: Queue, **more: object) -> ClusterConfiguration:
    queues = queues or (Queue("compute1", "ONDEMAND", (resource("queue1-i1", 4, 16),)),)
    return ClusterConfiguration("us-west-2", "ubuntu2004", "c5.4xlarge", queues, **more)  # type: ignore[arg-type]


def resource(name: str, least: int, most: int, kind: str = "trn1.32xlarge") -> ComputeResource:
    return ComputeResource(name, kind, least, most, efa=True)


def lines(text: str, begin: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(begin)]


def values(text: str) -> dict[str, str]:
    """All that is said of Slurm as a whole."""
    split = (line.partition("=") for line in text.splitlines() if " " not in line)
    return {name: value for name, _, value in split}


def test_nodes_have_the_names_and_the_size_that_aws_gives_them() -> None:
    """Static ones and dynamic ones; a resource without dynamic ones has no line for them."""
    first, second = lines(slurm_conf(post(), "ubuntu"), "NodeName=")
    assert first == (
        "NodeName=compute1-st-queue1-i1-[1-4] CPUs=128 RealMemory=498073 "
        "Weight=1 Feature=static,trn1.32xlarge,queue1-i1,efa State=CLOUD"
    )
    assert second.startswith("NodeName=compute1-dy-queue1-i1-[1-12] CPUs=128 ")
    only_static = post(Queue("q", "SPOT", (resource("r", 2, 2),)))
    assert [line.split()[0] for line in lines(slurm_conf(only_static, "u"), "NodeName=")] == [
        "NodeName=q-st-r-[1-2]"
    ]


def test_queues_are_partitions_and_the_first_is_the_default() -> None:
    """Each with its own nodes; one that gives jobs whole nodes does so without --exclusive."""
    large = Queue("large", "ONDEMAND", (resource("a", 1, 3), resource("b", 0, 2, "trn1.2xlarge")))
    small = Queue("small", "ONDEMAND", (resource("c", 0, 1),), job_exclusive_allocation=True)
    first, second = lines(slurm_conf(post(large, small), "u"), "PartitionName=")
    assert first == (
        "PartitionName=large Nodes=large-st-a-[1-1],large-dy-a-[1-2],large-dy-b-[1-2] Default=YES "
        "MaxTime=INFINITE State=UP"
    )
    assert second == (
        "PartitionName=small Nodes=small-dy-c-[1-1] Default=NO MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE"
    )


def test_static_nodes_stay_and_others_leave_when_they_are_idle() -> None:
    """After ScaledownIdletime, which a test may make shorter; -1 keeps them."""
    found = values(slurm_conf(post(), "u"))
    assert found["SuspendTime"] == "600"
    static = "compute1-st-queue1-i1"
    assert found["SuspendExcNodes"] == ",".join(f"{static}-{number}" for number in range(1, 5))
    assert values(slurm_conf(post(), "u", idle_s=8))["SuspendTime"] == "8"
    assert values(slurm_conf(post(scaledown_idletime_minutes=-1), "u"))["SuspendTime"] == "-1"
    dynamic = post(Queue("q", "ONDEMAND", (resource("r", 0, 2),)))
    assert "SuspendExcNodes" not in slurm_conf(dynamic, "u")


def test_a_stopped_fleet_starts_no_job() -> None:
    """Also when slurmctld starts anew meanwhile."""
    text = slurm_conf(post(), "u", running=False)
    assert [line.rpartition(" ")[2] for line in lines(text, "PartitionName=")] == ["State=INACTIVE"]


def test_custom_settings_win() -> None:
    """CustomSlurmSettings of the cluster, of a queue and of a resource: each once, in its own line."""
    custom = resource("r", 0, 1)
    custom = ComputeResource(**{**vars(custom), "custom_slurm_settings": (("MemSpecLimit", "7"),)})
    queue = Queue("q", "ONDEMAND", (custom,), custom_slurm_settings=(("MaxTime", "60"),))
    text = slurm_conf(post(queue, custom_slurm_settings=(("ReturnToService", "1"),)), "u")
    assert values(text)["ReturnToService"] == "1" and text.count("ReturnToService") == 1
    assert " MaxTime=60 " in text and "INFINITE" not in text
    assert lines(text, "NodeName=")[0].endswith(" MemSpecLimit=7")
