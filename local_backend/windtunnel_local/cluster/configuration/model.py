"""The parts of a cluster from its YAML file that have an effect here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

DEFAULT_MAX_COUNT = 10
DEFAULT_MIN_COUNT = 0
DEFAULT_SCALEDOWN_MINUTES = 10

Settings = tuple[tuple[str, str], ...]
"""CustomSlurmSettings: names and values, in the file's order."""


@dataclass(frozen=True)
class Node:
    """One node that can run. ``static``: it runs as long as the fleet does."""

    name: str
    static: bool


@dataclass(frozen=True)
class ComputeResource:
    """Nodes of one instance type in a queue. ``instance_type``: EC2's name, without ``ml.``."""

    name: str
    instance_type: str
    min_count: int
    max_count: int
    efa: bool
    static_priority: int = 1
    """Slurm's weight of its static nodes. Of the free nodes that fit, a job gets those with the lowest weight."""
    dynamic_priority: int = 1000
    """The same for its dynamic nodes."""
    custom_slurm_settings: Settings = ()
    """Settings in each node's line of slurm.conf."""


@dataclass(frozen=True)
class Queue:
    """A partition of Slurm. ``capacity_type``: ONDEMAND, SPOT or CAPACITY_BLOCK; it changes the price alone."""

    name: str
    capacity_type: str
    compute_resources: tuple[ComputeResource, ...]
    job_exclusive_allocation: bool = False
    """Whether each job has its nodes to itself (Slurm's OverSubscribe=EXCLUSIVE)."""
    custom_slurm_settings: Settings = ()
    """Settings in the partition's line of slurm.conf."""

    def nodes(self, resource: ComputeResource) -> Iterator[Node]:
        """The nodes of one of its resources, named as ParallelCluster names them: static ones first."""
        dynamic = resource.max_count - resource.min_count
        for kind, count in (("st", resource.min_count), ("dy", dynamic)):
            for number in range(1, count + 1):
                yield Node(f"{self.name}-{kind}-{resource.name}-{number}", kind == "st")


@dataclass(frozen=True)
class SharedFolder:
    """A folder that all nodes see. ``mount_dir``: an absolute path in the nodes."""

    name: str
    mount_dir: str
    storage_type: str
    """Ebs, Efs, FsxLustre, ...: here each is a folder of this machine."""


@dataclass(frozen=True)
class ClusterConfiguration:
    """A cluster. The first queue is Slurm's default partition, as with ParallelCluster."""

    region: str
    os: str
    head_instance_type: str
    queues: tuple[Queue, ...]
    shared_storage: tuple[SharedFolder, ...] = ()
    scaledown_idletime_minutes: int = DEFAULT_SCALEDOWN_MINUTES
    """Idle time after which a dynamic node stops; -1: never."""
    custom_slurm_settings: Settings = ()
    """Additional lines of slurm.conf."""
    tags: tuple[tuple[str, str], ...] = ()
    without_effect: tuple[str, ...] = ()
    """Keys in the file that have no effect here, each once: ``HeadNode.Ssh.KeyName``."""

    def nodes(self) -> Iterator[tuple[Queue, ComputeResource, Node]]:
        """Every node that can run, in the file's order."""
        for queue in self.queues:
            for resource in queue.compute_resources:
                for node in queue.nodes(resource):
                    yield queue, resource, node

    @property
    def instance_types(self) -> dict[str, str]:
        """EC2's instance type by node, of every node that can run."""
        return {node.name: resource.instance_type for _, resource, node in self.nodes()}
