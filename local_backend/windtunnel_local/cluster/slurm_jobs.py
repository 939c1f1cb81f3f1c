"""Parse Slurm's records of jobs. Pure. The file of completed jobs and ``scontrol show job`` both have ``KEY=value``.

A job that was requeued has a line for each run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

_KEY = re.compile(r"(?<!\S)(\S[^\s=]*)=")
_PART = re.compile(r"([^,\[]+)(?:\[([^\]]*)\])?(?:,|$)")
_NOT_YET = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD")
RUNS = ("RUNNING", "SUSPENDED", "COMPLETING", "STOPPED")
_MOST_NODES = 100_000


@dataclass(frozen=True)
class JobRun:
    """One run of a job. ``started`` None: not yet; ``ended`` None: it runs."""

    number: int
    task: str | None
    """squeue's name of a task of a job array: ``2_0``."""
    name: str
    state: str
    queue: str
    nodes: tuple[str, ...]
    submitted: datetime | None
    started: datetime | None
    ended: datetime | None


def read_jobs(text: str) -> list[JobRun]:
    """The jobs in the text, in its order; lines without a job are skipped. Times are by the nodes' clock, UTC."""
    found = (_job(dict(_members(line))) for line in text.splitlines())
    return [job for job in found if job is not None]


def _members(line: str) -> Iterator[tuple[str, str]]:
    """The keys and values of a line. Takes linear time, because users choose the job's name in it."""
    keys = list(_KEY.finditer(line))
    ends = [*(key.start() for key in keys[1:]), len(line)]
    for key, end in zip(keys, ends, strict=False):
        yield key[1], line[key.end() : end].rstrip()


def expand(names: str) -> tuple[str, ...]:
    """Expand Slurm's ``a-[1-3,7],b`` to a-1, a-2, a-3, a-7, b. Digits keep their leading zeros."""
    found: list[str] = []
    for prefix, numbers in _PART.findall(names):
        found += [prefix + number for number in _numbers(numbers)] if numbers else [prefix]
    return tuple(found)


def _numbers(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            continue
        for number in range(int(first), min(int(last or first), int(first) + _MOST_NODES) + 1):
            yield str(number).zfill(len(first))


def _job(fields: Mapping[str, str]) -> JobRun | None:
    number, state = fields.get("JobId", ""), fields.get("JobState", "").split(" ")[0].split("+")[0]
    if not number.isdecimal() or not state:
        return None
    nodes = fields.get("NodeList", "")
    runs, waits = state in RUNS, state in _NOT_YET
    return JobRun(
        number=int(number),
        task=f"{fields['ArrayJobId']}_{fields['ArrayTaskId']}"
        if {"ArrayJobId", "ArrayTaskId"} <= fields.keys()
        else None,
        name=fields.get("JobName", fields.get("Name", "")),
        state=state,
        queue=fields.get("Partition", ""),
        nodes=() if waits or nodes in ("(null)", "None assigned") else expand(nodes),
        submitted=_time(fields.get("SubmitTime", "")),
        started=None if waits else _time(fields.get("StartTime", "")),
        # Of a job that runs Slurm says when its time limit ends it.
        ended=None if runs or waits else _time(fields.get("EndTime", "")),
    )


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:  # Unknown, None
        return None
