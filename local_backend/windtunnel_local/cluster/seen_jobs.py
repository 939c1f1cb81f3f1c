"""Read a cluster's Slurm jobs from its folder: those that have ended, and those that wait or run.

Nodes may have written these files. So they are read with the limits of `untrusted_files`, and no line may expand to
more than fits in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.slurm_jobs import JobRun, read_jobs
from windtunnel_local.cluster.untrusted_files import changed, folders_in, tail_of, text_of

_MOST_OF_JOBS = 512 << 10
"""Bytes read from the end of the file of completed jobs: about a thousand jobs."""
_LONGEST_LINE = 16 << 10
_MOST_OF_NAMES = 16 << 20
"""Most bytes of expanded node names in those lines: a thousand jobs of 200 nodes."""
_A_NAME = 60
_JOB_LINE = re.compile(r"JobId=[0-9]{1,10} ")
_JOB_FOLDER = re.compile(r"[0-9]{1,10}")
_SPOOLED = re.compile(r"job\.([0-9]{1,10})")
_NODES = re.compile(r"NodeList=(\S*)")
_RANGES = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_COMES_AGAIN = ("REQUEUED", "NODE_FAIL", "PREEMPTED")
"""States at the end of a run after which the job goes back to the queue."""


def ended_jobs(layout: Layout) -> tuple[tuple[JobRun, ...], bool]:
    """The ended runs of jobs, oldest first, and whether these are all."""
    text, whole = tail_of(layout.completed_jobs, _MOST_OF_JOBS)
    runs, taken = _completed(text)
    return runs, whole and taken


@lru_cache(maxsize=4)
def _completed(text: str) -> tuple[tuple[JobRun, ...], bool]:
    found: list[JobRun] = []
    room = _MOST_OF_NAMES
    for line in reversed(text.split("\n")):
        if not _JOB_LINE.match(line) or len(line) > _LONGEST_LINE:
            continue
        try:
            room -= _room_of_names(line)
            if room < 0:
                return tuple(reversed(found)), False
            found += read_jobs(line)
        except ValueError:  # digits that are none: no line of Slurm's
            continue
    return tuple(reversed(found)), True


def _room_of_names(line: str) -> int:
    """Bytes of the node names once their ranges are expanded."""
    return sum(
        (_A_NAME + len(nodes)) * sum(map(_count, ",".join(_RANGES.findall(nodes)).split(",")))
        for nodes in _NODES.findall(line)
        if "[" in nodes
    )


def _count(numbers: str) -> int:
    found = _RANGE.fullmatch(numbers)
    if found is None:
        raise ValueError(f"no range: {numbers!r}")
    return max(0, int(found[2] or found[1]) - int(found[1])) + 1


def going_jobs(
    layout: Layout, ended: tuple[JobRun, ...], up: Mapping[str, datetime], *, every_job: bool
) -> Iterator[JobRun]:
    """Jobs that wait or run. Slurm keeps their scripts, and a folder for counters appears when one begins.

    A job without a script (`srun`, `salloc`) is seen once it begins, unless it may be an ended job that was not read.
    """
    last = {run.number: run for run in ended}
    spooled = dict(_spooled(layout.slurm_state))
    begun = {int(entry.name) for entry in folders_in(layout.jobs) if _JOB_FOLDER.fullmatch(entry.name)}
    for number in sorted(spooled.keys() | (begun if every_job else set())):
        before = last.get(number)
        if before is not None and (number not in spooled or before.state not in _COMES_AGAIN):
            continue
        since = None if before is None else before.ended
        started, nodes = _traces(layout.jobs / str(number), up, since) if number in begun else (None, ())
        name, submitted = _script(spooled[number]) if number in spooled else ("", None)
        state = "PENDING" if started is None else "RUNNING"
        yield JobRun(number, None, name, state, "", nodes, submitted, started, None)


def _spooled(folder: Path) -> Iterator[tuple[int, Path]]:
    for part in range(10):
        for entry in folders_in(folder / f"hash.{part}"):
            if found := _SPOOLED.fullmatch(entry.name):
                yield int(found[1]), Path(entry.path)


def _traces(
    folder: Path, up: Mapping[str, datetime], since: datetime | None
) -> tuple[datetime | None, tuple[str, ...]]:
    """The latest time at which a job can have begun, and its nodes. ``since``: ignores folders of earlier runs."""
    nodes = {entry.name: changed(entry.path) for entry in folders_in(folder) if entry.name in up}
    moments = [changed(folder), *nodes.values()]
    told = [moment for moment in moments if moment and (since is None or moment > since)]
    if not told:
        return None, ()
    return min(told), tuple(sorted(name for name, moment in nodes.items() if moment in told))


def _script(folder: Path) -> tuple[str, datetime | None]:
    """The name of a job and the time of its submission, from the folder in which Slurm keeps its script."""
    prefix = "SLURM_JOB_NAME="
    kept = text_of(folder / "environment").split("\0")
    name = next((each.removeprefix(prefix) for each in kept if each.startswith(prefix)), "")
    return name, changed(folder / "script")
