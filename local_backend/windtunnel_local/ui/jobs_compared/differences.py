"""What several jobs have in common and where they differ: settings and findings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from windtunnel.priceperf.workload.counters import Diagnostic, worst_first

_LONGEST_LINE = 100
_LONGEST_MESSAGE = 600

Change = Literal["new", "gone", "same", "absent", "unknown"]


@dataclass(frozen=True)
class Setting:
    """A setting's name, and its value in each job; None: the job does not have it."""

    name: str
    values: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        """Whether at least two jobs have different values."""
        return len(set(self.values)) > 1


def settings(of_jobs: Sequence[Mapping[str, str]]) -> tuple[list[Setting], list[Setting]]:
    """The settings that differ, and those that are equal in all jobs; each list sorted by name."""
    names = sorted({name for one in of_jobs for name in one})
    found = [Setting(name, tuple(one.get(name) for one in of_jobs)) for name in names]
    return [one for one in found if one.differs], [one for one in found if not one.differs]


def request_of(job: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a described job, except for hyperparameters, as text."""
    resources = job["ResourceConfig"]
    groups = resources.get("InstanceGroups") or [resources]
    channels = {
        f"channel {one['ChannelName']}": one["DataSource"].get("S3DataSource", {}).get("S3Uri", "")
        for one in job.get("InputDataConfig", ())
    }
    return {
        "instances": " + ".join(f"{one.get('InstanceCount', 1)} × {one['InstanceType']}" for one in groups),
        "image": job["AlgorithmSpecification"].get("TrainingImage", ""),
        "managed spot": "yes" if job.get("EnableManagedSpotTraining") else "no",
        **channels,
        **{f"environment {name}": value for name, value in job.get("Environment", {}).items()},
    }


@dataclass(frozen=True)
class Cell:
    """A finding in one job. ``change``: compared with the first job. ``line``: in this job's script."""

    change: Change
    severity: str = ""
    line: str = ""
    count: int = 0


@dataclass(frozen=True)
class Finding:
    """A kind of finding: the message of the first job that has it, and a cell for each job."""

    kind: str
    message: str
    cells: tuple[Cell, ...]


def findings(of_jobs: Sequence[Sequence[Diagnostic] | None]) -> list[Finding]:
    """The findings of all jobs, worst first. Those of each job come worst first; None: they are not known.

    Findings of the same kind count as the same, since line numbers of scripts change.
    """
    listed = [_by_kind(one) for one in of_jobs]
    every = worst_first(found for one in listed if one is not None for found in one.values())
    kinds = dict.fromkeys(found.kind for found in every)
    messages = {found.kind: found.message[:_LONGEST_MESSAGE] for found in reversed(every)}
    return [Finding(kind, messages[kind], tuple(_cells(kind, listed))) for kind in kinds]


def _by_kind(found: Sequence[Diagnostic] | None) -> dict[str, Diagnostic] | None:
    """The worst finding of each kind."""
    if found is None:
        return None
    worst: dict[str, Diagnostic] = {}
    for one in found:
        worst.setdefault(one.kind, one)
    return worst


def _cells(kind: str, listed: Sequence[Mapping[str, Diagnostic] | None]) -> list[Cell]:
    first, cells = listed[0], []
    for place, one in enumerate(listed):
        if one is None:
            cells.append(Cell("unknown"))
            continue
        found = one.get(kind)
        before = None if first is None else kind in first
        change: Change = "same" if found is not None else "absent"
        if place and before is not None and before != (found is not None):
            change = "new" if found is not None else "gone"
        if found is None:
            cells.append(Cell(change))
        else:
            severity, line = found.severity[:_LONGEST_LINE], found.line[:_LONGEST_LINE]
            cells.append(Cell(change, severity, line, found.count))
    return cells
