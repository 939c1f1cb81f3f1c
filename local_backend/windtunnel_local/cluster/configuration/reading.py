"""Read a configuration file: returns a `ClusterConfiguration`, or raises with all of its mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel_local.cluster.errors import InvalidConfiguration, Problem

from . import rules
from .document import Entry, NotYaml, parse
from .findings import Findings
from .key import Key
from .keys import CLUSTER
from .model import (
    DEFAULT_MAX_COUNT,
    DEFAULT_MIN_COUNT,
    DEFAULT_SCALEDOWN_MINUTES,
    ClusterConfiguration,
    ComputeResource,
    Queue,
    Settings,
    SharedFolder,
)
from .shape import sound

DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True)
class Read:
    """A file without mistakes."""

    configuration: ClusterConfiguration
    warnings: tuple[Problem, ...]
    """What works here, and is refused or different on AWS."""
    document: Mapping[str, Any]
    """The file's plain values, for comparison."""


def read(text: str, file: str, region: str = DEFAULT_REGION) -> ClusterConfiguration:
    """The cluster that a file asks for.

    Args:
        text: YAML.
        file: its name in messages.
        region: used if the file names none.

    Raises:
        InvalidConfiguration: with all of its mistakes.
    """
    return read_all(text, file, region).configuration


def read_all(text: str, file: str, region: str = DEFAULT_REGION) -> Read:
    """As `read`; also returns warnings, plain values and keys without effect.

    Raises:
        InvalidConfiguration: with all of its mistakes.
    """
    findings = Findings(file)
    root = _document(text, findings)
    if findings.errors:
        raise InvalidConfiguration(findings.errors)
    return Read(_configuration(root, region), findings.warnings, root.plain)


def _document(text: str, findings: Findings) -> Entry:
    """The valid part of the file; mistakes are added to ``findings``."""
    try:
        given = parse(text, lambda line, words: findings.error(line, "", words))
    except NotYaml as error:
        findings.error(error.line, "", str(error))
        return Entry({}, 1)
    if not isinstance(given.value, dict):
        findings.error(1, "", "the file must hold keys with values, e.g. `Region: us-east-1`.")
        return Entry({}, 1)
    root = sound(given, CLUSTER, "", findings) or Entry({}, 1)
    rules.check(root, findings)
    return root


def _configuration(root: Entry, region: str) -> ClusterConfiguration:
    scheduling = root.at("Scheduling") or Entry({}, 1)
    slurm = scheduling.at("SlurmSettings") or Entry({}, 1)
    return ClusterConfiguration(
        region=root.get("Region", region),
        os=root.plain["Image"]["Os"],
        head_instance_type=root.plain["HeadNode"]["InstanceType"],
        queues=tuple(_queue(entry) for entry in scheduling.items("SlurmQueues")),
        shared_storage=tuple(
            SharedFolder(entry.get("Name"), rules.mount_dir(entry.get("MountDir")), entry.get("StorageType"))
            for entry in root.items("SharedStorage")
        ),
        scaledown_idletime_minutes=slurm.get("ScaledownIdletime", DEFAULT_SCALEDOWN_MINUTES),
        custom_slurm_settings=tuple(
            setting for entry in slurm.items("CustomSlurmSettings") for setting in _settings(entry)
        ),
        tags=tuple((entry.get("Key"), entry.get("Value")) for entry in root.items("Tags")),
        without_effect=tuple(dict.fromkeys(_idle_keys(root, CLUSTER, ""))),
    )


def _queue(entry: Entry) -> Queue:
    return Queue(
        name=entry.get("Name"),
        capacity_type=entry.get("CapacityType", "ONDEMAND"),
        compute_resources=tuple(_resource(member) for member in entry.items("ComputeResources")),
        job_exclusive_allocation=bool(entry.get("JobExclusiveAllocation")),
        custom_slurm_settings=_settings(entry.at("CustomSlurmSettings")),
    )


def _resource(entry: Entry) -> ComputeResource:
    # Of several instance types AWS takes what it has or what is cheapest; here the first stands for all.
    several = entry.items("Instances")
    efa = entry.at("Efa")
    return ComputeResource(
        name=entry.get("Name"),
        instance_type=several[0].get("InstanceType") if several else entry.get("InstanceType"),
        min_count=entry.get("MinCount", DEFAULT_MIN_COUNT),
        max_count=entry.get("MaxCount", DEFAULT_MAX_COUNT),
        efa=bool(efa and efa.get("Enabled")),
        static_priority=entry.get("StaticNodePriority", ComputeResource.static_priority),
        dynamic_priority=entry.get("DynamicNodePriority", ComputeResource.dynamic_priority),
        custom_slurm_settings=_settings(entry.at("CustomSlurmSettings")),
    )


def _settings(entry: Entry | None) -> Settings:
    return tuple((name, str(value)) for name, value in (entry.plain if entry else {}).items())


def _idle_keys(entry: Entry, key: Key, path: str) -> list[str]:
    """The dotted keys without effect. Members of lists have no numbers in them, so each key is told once."""
    if key.kind == "section" and isinstance(entry.value, dict):
        found: list[str] = []
        for name, value in entry.value.items():
            found += _idle_keys(value, key.keys[name], f"{path}.{name}" if path else name)
        return found
    if key.kind == "list" and key.of and key.of.kind == "section" and isinstance(entry.value, list):
        return [found for value in entry.value for found in _idle_keys(value, key.of, path)]
    return [] if key.effect or (key.of and key.of.effect) else [path]
