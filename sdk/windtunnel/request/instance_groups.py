"""Instance groups: a job on instances of several types. Names and meanings are SageMaker SDK v2's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InstanceGroup:
    """Some instances of one type. SDK v2's ``sagemaker.instance_group.InstanceGroup``.

    Attributes:
        instance_group_name: how channels and the script name the group.
        instance_type: as the estimator's argument of this name.
        instance_count: >= 1.
    """

    instance_group_name: str
    instance_type: str
    instance_count: int


def as_group(given: Any) -> InstanceGroup | None:
    """The group as an `InstanceGroup`, also from SDK v2's object; None for anything else."""
    if isinstance(given, InstanceGroup):
        return given
    try:
        return InstanceGroup(given.instance_group_name, given.instance_type, given.instance_count)
    except AttributeError:
        return None


def group_names(groups: Sequence[Any]) -> list[str]:
    """The names of groups, given as objects or as names."""
    return [group if isinstance(group, str) else group.instance_group_name for group in groups]


def from_request(resources: dict[str, Any]) -> list[InstanceGroup]:
    """The groups of a ResourceConfig; empty without InstanceGroups."""
    return [
        InstanceGroup(group["InstanceGroupName"], group["InstanceType"], group["InstanceCount"])
        for group in resources.get("InstanceGroups") or []
    ]


def to_request(groups: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    """The groups as ResourceConfig states them."""
    if groups is None:
        return None
    return [
        {
            "InstanceGroupName": group.instance_group_name,
            "InstanceType": group.instance_type,
            "InstanceCount": group.instance_count,
        }
        for group in groups
    ]


def host_count(resources: dict[str, Any]) -> int:
    """Number of hosts that a ResourceConfig asks for."""
    groups = resources.get("InstanceGroups") or [resources]
    return sum(int(group.get("InstanceCount", 1)) for group in groups)
