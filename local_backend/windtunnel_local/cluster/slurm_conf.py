"""Make a cluster's slurm.conf. Pure. The lines of ParallelCluster 3 that make sense without its machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windtunnel.priceperf.instances import CATALOG, GIB
from windtunnel_local.cluster.configuration import ClusterConfiguration, ComputeResource, Queue
from windtunnel_local.cluster.layout import PROGRAMS, SLURM_STATE

HEAD = "head"
"""The head node's host name."""
COMPLETED_JOBS = f"{SLURM_STATE}/completed_jobs"
RESUME_TIMEOUT_S = 120
"""Slurm's ResumeTimeout: a container starts in seconds, even if sixteen start on two processors."""

_USABLE_MEMORY = 0.95
"""The share of an instance's memory that ParallelCluster tells Slurm."""
_NEVER = -1
_SETTINGS: Mapping[str, object] = {
    "ClusterName": "windtunnel",
    "SlurmctldHost": HEAD,
    "AuthType": "auth/munge",
    "CredType": "cred/munge",
    "StateSaveLocation": SLURM_STATE,
    "SlurmdSpoolDir": "/var/spool/slurmd",
    "SlurmctldPidFile": "/tmp/slurmctld.pid",  # noqa: S108  in the head node's own file system
    "SlurmdPidFile": "/run/slurmd.pid",
    # The plug-ins that need no rights over the machine's control groups.
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "JobCompType": "jobcomp/filetxt",
    "JobCompLoc": COMPLETED_JOBS,
    "MpiDefault": "none",
    "MailProg": "/bin/true",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "LaunchParameters": "use_interactive_step",
    "TaskProlog": f"{PROGRAMS}/task-prolog.sh",
    # Nodes say that they have the processors and the memory of their instance type.
    "SlurmdParameters": "config_overrides",
    # A node that comes back is another container, with another address under the same name.
    "SlurmctldParameters": "cloud_dns,idle_on_node_suspend,power_save_interval=2",
    "CommunicationParameters": "NoAddrCache",
    "TreeWidth": 65533,  # the controller speaks to each node itself
    "PrivateData": "cloud",  # shows nodes that are powered down
    "ReturnToService": 2,
    "SlurmctldTimeout": 30,
    "SlurmdTimeout": 30,
    "KillWait": 5,
    "MessageTimeout": 30,
    "ResumeProgram": f"{PROGRAMS}/resume",
    "SuspendProgram": f"{PROGRAMS}/suspend",
    "ResumeTimeout": RESUME_TIMEOUT_S,
    "SuspendTimeout": 5,
    "ResumeRate": 0,
    "SuspendRate": 0,
}
"""What all clusters have, besides the settings that `_general` adds."""


def slurm_conf(
    configuration: ClusterConfiguration, user: str, idle_s: float | None = None, *, running: bool = True
) -> str:
    """The file's text.

    Args:
        configuration: queues become partitions, the first the default; compute resources become nodes.
        user: who runs slurmctld: the cluster's user, who then owns the files that it writes.
        idle_s: idle seconds after which dynamic nodes stop; None: as the configuration says.
        running: whether the fleet runs; no job starts while it is stopped.
    """
    text = [f"{name}={value}" for name, value in _general(configuration, user, idle_s).items()]
    for queue in configuration.queues:
        groups = list(_groups(queue))
        default = queue is configuration.queues[0]
        text += ["", *(_nodes(*group) for group in groups)]
        text.append(_partition(queue, [names for names, _, _ in groups], default, running))
    return "\n".join(text) + "\n"


def _general(configuration: ClusterConfiguration, user: str, idle_s: float | None) -> dict[str, object]:
    minutes = configuration.scaledown_idletime_minutes
    suspend_s = (minutes * 60 if minutes != _NEVER else _NEVER) if idle_s is None else max(1, round(idle_s))
    static = [node.name for _, _, node in configuration.nodes() if node.static]
    return {
        **_SETTINGS,
        "SlurmUser": user,
        "SuspendTime": suspend_s,
        **({"SuspendExcNodes": ",".join(static)} if static else {}),
        **dict(configuration.custom_slurm_settings),
    }


def _groups(queue: Queue) -> Iterable[tuple[str, ComputeResource, bool]]:
    """The static and the dynamic nodes of each resource, if it has some: their names (``a-[1-3]``) come first."""
    for resource in queue.compute_resources:
        for static in (True, False):
            names = [node.name for node in queue.nodes(resource) if node.static == static]
            if names:
                yield f"{names[0].rpartition('-')[0]}-[1-{len(names)}]", resource, static


def _nodes(names: str, resource: ComputeResource, static: bool) -> str:
    features = ["static" if static else "dynamic", resource.instance_type, resource.name]
    instance = CATALOG[f"ml.{resource.instance_type}"]
    values: Mapping[str, object] = {
        "NodeName": names,
        "CPUs": int(instance.vcpus.value),
        "RealMemory": int(instance.host_memory_bytes / GIB * 1024 * _USABLE_MEMORY),
        # Of nodes that fit, those with the least weight get the job: static ones, unless they are told otherwise.
        "Weight": resource.static_priority if static else resource.dynamic_priority,
        "Feature": ",".join(features + (["efa"] if resource.efa else [])),
        # Static ones too: the names of others would have to be known when slurmctld starts.
        "State": "CLOUD",
        **dict(resource.custom_slurm_settings),
    }
    return " ".join(f"{name}={value}" for name, value in values.items())


def _partition(queue: Queue, members: Iterable[str], default: bool, running: bool) -> str:
    values: Mapping[str, object] = {
        "PartitionName": queue.name,
        "Nodes": ",".join(members),
        "Default": "YES" if default else "NO",
        "MaxTime": "INFINITE",
        "State": "UP" if running else "INACTIVE",
        **({"OverSubscribe": "EXCLUSIVE"} if queue.job_exclusive_allocation else {}),
        **dict(queue.custom_slurm_settings),
    }
    return " ".join(f"{name}={value}" for name, value in values.items())
