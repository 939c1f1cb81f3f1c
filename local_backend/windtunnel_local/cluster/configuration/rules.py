"""Rules over several keys: those of ParallelCluster's validators, and what is not possible here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from windtunnel.priceperf.instances import CATALOG, NEURON_TYPES

from .document import Entry
from .findings import Findings
from .model import DEFAULT_MAX_COUNT, DEFAULT_MIN_COUNT

_NAME = (
    r"[a-z][a-z0-9-]{0,24}",
    "it must begin with a letter, hold lowercase letters, digits and hyphens alone, have at most 25 characters",
    "NameValidator",
)
_STORAGE_NAME = (
    r"[\w+\-=:@][\w+\-=.:@]{0,29}",
    "letters, digits and + - = . _ : @ alone, not a dot first, at most 30 characters",
    "SharedStorageNameValidator",
)
"""Pattern of a name, what it asks for in words, and the validator of ParallelCluster; `default` is never one."""
_MOST_QUEUES = 50
_MOST_RESOURCES = 50
_MOST_NODES = 10_000
"""Limits of the whole cluster. The second is this machine's, and not ParallelCluster's."""

_RESERVED_FOLDERS = re.compile(
    "/(bin|boot|dev|etc|lib|lib64|media|mnt|proc|root|run|sbin|srv|sys|tmp|usr|var|NONE"
    "|opt(/slurm|/intel|/parallelcluster(/shared|/shared_login_nodes)?|/windtunnel|/aws)?)"
)
"""Mount points that ParallelCluster refuses, and folders that the nodes' image has in /opt."""
_OF_THE_NODES = re.compile(
    "/(dev|etc/(munge|slurm|ssh)|opt/(aws|venv|windtunnel)|proc|run|sys|var/spool/slurm(ctl)?d)(/.*)?"
)
"""Folders with a node's own keys, programs and state, which a mount there would hide."""
_SETTING = re.compile(r"\w+=[^\x00-\x1f]*")

_OURS = {
    level: frozenset(names.split())
    for level, names in {
        "SlurmConf": "epilog grestypes launchparameters prolog reconfigflags resumefailprogram resumeprogram"
        " resumetimeout slurmctldhost slurmctldlogfile slurmctldparameters slurmdlogfile slurmuser suspendexcnodes"
        " suspendprogram suspendtime taskplugin treewidth",
        "Queue": "nodes partitionname resumetimeout state suspendtime oversubscribe",
        "ComputeResource": "cpus features gres nodeaddr nodehostname nodename state weight",
    }.items()
}
"""Settings of Slurm that the cluster sets itself, in lower case."""


def check(root: Entry, findings: Findings) -> None:
    """Check valid values against each other."""
    scheduling = root.at("Scheduling")
    if scheduling is None:
        return
    _queues(scheduling, findings)
    _storage(root, findings)
    for place, entry in enumerate(scheduling.items("SlurmSettings", "CustomSlurmSettings")):
        _slurm_settings(entry, "SlurmConf", f"Scheduling/SlurmSettings/CustomSlurmSettings/{place}", findings)


def _queues(scheduling: Entry, findings: Findings) -> None:
    queues = list(_numbered(scheduling.items("SlurmQueues"), "Scheduling/SlurmQueues"))
    line = (scheduling.at("SlurmQueues") or scheduling).line
    _unique(queues, "Queue", findings)
    if len(queues) > _MOST_QUEUES:
        findings.error(
            queues[_MOST_QUEUES][1].line,
            "Scheduling/SlurmQueues",
            f"{len(queues)} queues are given; at most {_MOST_QUEUES} may be.",
            "MaxCountValidator",
        )
    total = 0
    for path, queue in queues:
        _name(queue, path, findings, *_NAME)
        resources = list(_numbered(queue.items("ComputeResources"), f"{path}/ComputeResources"))
        _unique(resources, "Compute resource", findings)
        total += len(resources)
        for place, resource in resources:
            _name(resource, place, findings, *_NAME)
            _counts(queue, resource, place, findings)
            _instance_type(resource, place, findings)
            _efa(resource, place, findings)
            if (settings := resource.at("CustomSlurmSettings")) is not None:
                _slurm_settings(settings, "ComputeResource", f"{place}/CustomSlurmSettings", findings)
        if (settings := queue.at("CustomSlurmSettings")) is not None:
            _slurm_settings(settings, "Queue", f"{path}/CustomSlurmSettings", findings)
    if total > _MOST_RESOURCES:
        findings.error(
            line,
            "Scheduling/SlurmQueues",
            f"{total} compute resources are given; at most {_MOST_RESOURCES} may be, of all queues.",
            "MaxCountValidator",
        )
    _nodes(queues, line, findings)


def _nodes(queues: Iterable[tuple[str, Entry]], line: int, findings: Findings) -> None:
    """Check the nodes of all queues: not too many, and no name twice."""
    first: dict[str, tuple[str, int]] = {}
    total = 0
    for path, queue in queues:
        for place, resource in _numbered(queue.items("ComputeResources"), f"{path}/ComputeResources"):
            own = str(queue.get("Name"))
            total += resource.get("MaxCount", DEFAULT_MAX_COUNT)
            for kind in ("st", "dy"):
                begins = f"{own}-{kind}-{resource.get('Name')}"
                other, there = first.setdefault(begins, (own, resource.line))
                if other != own:
                    findings.error(
                        resource.line,
                        f"{place}/Name",
                        f"nodes {begins}-1, ... would be those of queue {other} (line {there}), too. Rename one.",
                        "DuplicateNameValidator",
                    )
    if total > _MOST_NODES:
        findings.error(
            line,
            "Scheduling/SlurmQueues",
            f"{total:,} nodes may come by all MaxCount; at most {_MOST_NODES:,} may here. Lower a MaxCount.",
            "MaxCountValidator",
        )


def _numbered(entries: list[Entry], path: str) -> Iterator[tuple[str, Entry]]:
    return ((f"{path}/{place}", entry) for place, entry in enumerate(entries))


def _unique(entries: Iterable[tuple[str, Entry]], what: str, findings: Findings) -> None:
    first: dict[str, int] = {}
    for path, entry in entries:
        name = entry.at("Name")
        if name is None:
            continue
        if str(name.value) in first:
            findings.error(
                name.line,
                f"{path}/Name",
                f"{name.value!r} is taken in line {first[str(name.value)]}. {what} names must be unique.",
                "DuplicateNameValidator",
            )
        first.setdefault(str(name.value), name.line)


def _name(entry: Entry, path: str, findings: Findings, pattern: str, rule: str, kind: str) -> None:
    name = entry.at("Name")
    if name is None:
        return
    text = str(name.value)
    if not re.fullmatch(pattern, text) or text == "default":
        findings.error(
            name.line, f"{path}/Name", f"{text!r} is no valid name: {rule}, and not 'default'.", kind
        )


def _counts(queue: Entry, resource: Entry, path: str, findings: Findings) -> None:
    least, most = resource.get("MinCount", DEFAULT_MIN_COUNT), resource.get("MaxCount", DEFAULT_MAX_COUNT)
    entry = resource.at("MinCount") or resource.at("MaxCount") or resource
    given = f"{most}" if resource.at("MaxCount") else f"{most} (its default)"
    if least > most:
        findings.error(
            entry.line,
            f"{path}/MinCount",
            f"{least} is more than MaxCount, {given}. Lower MinCount, or raise MaxCount.",
            "ComputeResourceSizeValidator",
        )
    elif queue.get("CapacityType") == "CAPACITY_BLOCK" and not 0 < least == most:
        findings.error(
            entry.line,
            f"{path}/MinCount",
            f"MinCount is {least} and MaxCount {given}; with CAPACITY_BLOCK they must be the same, and more than 0.",
            "ComputeResourceSizeValidator",
        )


def _instance_type(resource: Entry, path: str, findings: Findings) -> None:
    one, several = resource.at("InstanceType"), resource.items("Instances")
    if one is not None and several:
        findings.error(one.line, f"{path}/InstanceType", "give either InstanceType or Instances, not both.")
    if one is None and not several:
        findings.error(resource.line, path, "InstanceType or Instances must be given.")
    places = [(f"{path}/InstanceType", one)] if one else []
    places += [
        (f"{place}/InstanceType", entry)
        for place, member in _numbered(several, f"{path}/Instances")
        if (entry := member.at("InstanceType"))
    ]
    seen: set[str] = set()
    for place, entry in places:
        name = str(entry.value)
        if name in seen:
            findings.error(entry.line, place, f"{name!r} is given twice.")
        seen.add(name)
        if f"ml.{name}" not in CATALOG:
            findings.error(entry.line, place, _unknown(name), "InstanceTypeValidator")
        elif f"ml.{name}" not in NEURON_TYPES:
            findings.warning(
                entry.line,
                place,
                f"{name} has no NeuronCores: its nodes are plain machines here, without an accelerator.",
                "InstanceTypeValidator",
            )


def _efa(resource: Entry, path: str, findings: Findings) -> None:
    enabled = resource.at("Efa", "Enabled")
    known = CATALOG.get(f"ml.{resource.get('InstanceType')}")
    if enabled and enabled.value and known and not known.has_efa:
        name = known.name.removeprefix("ml.")
        findings.error(
            enabled.line, f"{path}/Efa/Enabled", f"{name} has no EFA: set it to false.", "EfaValidator"
        )


def _unknown(name: str) -> str:
    known = ", ".join(full.removeprefix("ml.") for full in NEURON_TYPES)
    others = ", ".join(full.removeprefix("ml.") for full in CATALOG if full not in NEURON_TYPES)
    hint = " An EC2 instance type has no 'ml.' before it." if name.startswith("ml.") else ""
    return f"The instance type {name!r} is not known.{hint} With NeuronCores: {known}. Without: {others}."


def mount_dir(given: str) -> str:
    """The absolute path in a node; ParallelCluster reads `fsx` as `/fsx`."""
    return f"/{given.strip('/')}"


def _storage(root: Entry, findings: Findings) -> None:
    folders = list(_numbered(root.items("SharedStorage"), "SharedStorage"))
    _unique(folders, "Shared storage", findings)
    mounted: list[tuple[str, str, int]] = []
    for path, folder in folders:
        _name(folder, path, findings, *_STORAGE_NAME)
        _storage_settings(folder, path, findings)
        entry = folder.at("MountDir")
        if entry is None:
            continue
        where = mount_dir(str(entry.value))
        mounted.append((where, f"{path}/MountDir", entry.line))
        if _RESERVED_FOLDERS.fullmatch(where) or _OF_THE_NODES.fullmatch(where):
            findings.error(
                entry.line, f"{path}/MountDir", f"{where} is reserved.", "SharedStorageMountDirValidator"
            )
    for (first, _, line), (second, path, second_line) in combinations(mounted, 2):
        if first == second:
            text, kind = f"{second} is mounted in line {line} already.", "DuplicateMountDirValidator"
        elif first.startswith(f"{second}/") or second.startswith(f"{first}/"):
            text, kind = f"{second} and {first} (line {line}) overlap.", "OverlappingMountDirValidator"
        else:
            continue
        findings.error(second_line, path, text, kind)


def _storage_settings(folder: Entry, path: str, findings: Findings) -> None:
    kind = folder.get("StorageType")
    for key, entry in folder.value.items() if isinstance(folder.value, dict) else ():
        if key.endswith("Settings") and kind is not None and key != f"{kind}Settings":
            findings.error(entry.line, f"{path}/{key}", f"does not belong to StorageType {kind}.")


def _slurm_settings(settings: Entry, level: str, path: str, findings: Findings) -> None:
    if not isinstance(settings.value, dict):
        findings.error(settings.line, path, "is a list; it must be names with values.")
        return
    if level == "SlurmConf" and len(settings.value) > 1:
        findings.error(
            settings.line,
            path,
            "holds several settings: that makes nodes of your own, and none would run here.",
        )
        return
    for name, entry in settings.value.items():
        if name.lower() in _OURS[level]:
            findings.error(
                entry.line, f"{path}/{name}", "is set by the cluster itself.", "CustomSlurmSettingsValidator"
            )
        if isinstance(entry.value, (dict, list)) or not _SETTING.fullmatch(f"{name}={entry.value}"):
            findings.error(entry.line, f"{path}/{name}", "must be one word with one value in one line.")
