"""The hosts of a job: the instance group and type of each, and the channels that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.priceperf.instances import NEURON_TYPES, InstanceType
from windtunnel_local.service.ground.job import Job

HOMOGENEOUS = "homogeneousCluster"
"""SageMaker's name for the only group of a job without InstanceGroups."""


@dataclass(frozen=True)
class Group:
    """An instance group: hosts of one instance type."""

    name: str
    instance: InstanceType
    hosts: tuple[str, ...]


def groups(job: Job) -> tuple[Group, ...]:
    """The groups in the order of the request; hosts are numbered across all groups."""
    resources = job.request["ResourceConfig"]
    found: list[Group] = []
    first = 0
    for group in resources.get("InstanceGroups") or [{**resources, "InstanceGroupName": HOMOGENEOUS}]:
        last = first + int(group.get("InstanceCount", 1))
        instance = NEURON_TYPES[group["InstanceType"]]
        found.append(Group(group["InstanceGroupName"], instance, job.hosts[first:last]))
        first = last
    return tuple(found)


def group_of(job: Job, host: str) -> Group:
    """The group of one host."""
    return next(group for group in groups(job) if host in group.hosts)


def channel_hosts(job: Job, channel: Mapping[str, Any]) -> tuple[str, ...]:
    """The hosts that a channel goes to: all, or those of S3DataSource.InstanceGroupNames."""
    names = channel["DataSource"]["S3DataSource"].get("InstanceGroupNames")
    if not names:
        return job.hosts
    return tuple(host for group in groups(job) if group.name in names for host in group.hosts)
