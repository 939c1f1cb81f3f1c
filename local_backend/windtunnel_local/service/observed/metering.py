"""Makes counters.json: one document from the simulator's counters of all hosts.

The simulator writes a JSON-lines file for each rank; nothing here knows a price. A worker may have
died in the middle of a line, and a script may never have used the device: a missing value is left
out and never guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from windtunnel.priceperf.instances import InstanceType
from windtunnel.priceperf.workload.counted_input import Input, Loader
from windtunnel.priceperf.workload.counters import Counters, InstanceGroup, Program, Seconds
from windtunnel_local.service.data.merged_folders import Tell, silent
from windtunnel_local.service.ground.billed_time import running_time
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.observed import diagnosing, graph_work, step_sums
from windtunnel_local.service.observed.counter_records import (
    MOST_BYTES,
    Record,
    Room,
    count,
    number,
    records,
    text,
    with_figures,
)
from windtunnel_local.service.request import requests
from windtunnel_local.service.request.cluster import groups
from windtunnel_local.service.request.images import framework_version


@dataclass(frozen=True)
class ContainerTimes:
    """When the first container of a job started and the last one ended, as far as known."""

    started: datetime | None = None
    finished: datetime | None = None


class ProgramName(NamedTuple):
    """The identity of a script that ran: the same on each host, in each attempt, and after a restart.

    ``trial``: neuron_parallel_compile ran the script only to collect its graphs.
    """

    script: str | None = None
    world_size: int = 0
    trial: bool = False


@dataclass(frozen=True)
class RankCounters:
    """The records of one worker (rank) of one program, by kind."""

    rank: int
    program: ProgramName = field(default=ProgramName())
    starts: Sequence[Record] = field(default=())
    graphs: Mapping[str, Record] = field(default_factory=dict)
    steps: Sequence[Record] = field(default=())
    ends: Sequence[Record] = field(default=())
    memory: Sequence[Record] = field(default=())
    findings: Sequence[Record] = field(default=())
    parameters: Sequence[Record] = field(default=())
    loaders: Sequence[Record] = field(default=())
    uncut: Sequence[Record] = field(default=())


def read_counters(*directories: Path, tell: Tell = silent) -> list[RankCounters]:
    """Read all ``rank-*.jsonl`` of one host, by rank and program. Folders that do not exist are skipped.

    ``directories``: one for each attempt of the job, in order; the records of a rank from all attempts are joined.
    ``tell`` gets a sentence if the files are too large to be read to their end.
    """
    found: dict[int, list[Path]] = {}
    for directory in directories:
        for path in directory.glob("rank-*.jsonl"):
            rank = path.stem.removeprefix("rank-")
            if rank.isdecimal() and path.is_file() and not path.is_symlink():
                found.setdefault(int(rank), []).append(path)
    room = Room()
    read = [counters for rank in sorted(found) for counters in _programs_of(rank, found[rank], room)]
    if room.left <= 0:
        tell(
            f"the job's steps are counted in more than {MOST_BYTES >> 20} MiB, of which the rest is not read: the "
            "report is of the steps before it."
        )
    return read


@dataclass(frozen=True)
class Ran:
    """A job as requested. ``framework_version``: used if no worker recorded one. ``seconds``: measured here."""

    name: str
    instance: InstanceType
    instance_count: int
    instance_groups: tuple[InstanceGroup, ...] | None = None
    framework_version: str | None = None
    seconds: Seconds = field(default_factory=Seconds)


def measure(job: Job, ranks: Sequence[RankCounters], times: ContainerTimes, now: datetime) -> Counters:
    """The counters of a training job: see `document`.

    Args:
        job: a job in the status Uploading.
        ranks: the records of all hosts.
        times: when the containers started and ended.
        now: until when ``seconds.training_total`` counts.
    """
    image = job.request["AlgorithmSpecification"]["TrainingImage"]
    ran = Ran(
        name=job.name,
        instance=requests.instance(job),
        instance_count=len(job.hosts),
        instance_groups=_instance_groups(job),
        framework_version=framework_version(image),
        seconds=_seconds(job, ranks, times, now),
    )
    return document(ran, ranks)


def document(job: Ran, ranks: Sequence[RankCounters]) -> Counters:
    """The counters of the program that trained longest. ``train`` and ``other`` are None if no such step ran.

    ``ranks``: the records of all hosts.
    """
    programs = _longest_training_first(ranks)
    everything, ranks = ranks, [r for r in ranks if programs and r.program == programs[0].program]
    ran = [program for program in programs if program.steps]
    counting = ran[0] if ran else None
    start = _first_start(ranks)
    world_size = count(start, "world_size") or None
    graphs = counting.graphs if counting else {}
    steps = step_sums.with_their_batches(counting.steps, graphs) if counting else []
    held = graph_work.parameters(counting.parameters) if counting else None
    # The cores that share one copy of a split model get the same batches.
    copies = max(1, (world_size or 1) // (held.cores if held else 1))
    memory = diagnosing.device_memory(record for r in ranks for record in r.memory)
    return Counters(
        job=job.name,
        instance_type=job.instance.name,
        instance_count=job.instance_count,
        instance_groups=job.instance_groups,
        instance_cores=count(start, "instance_cores") or job.instance.core_count,
        cores_used=count(start, "local_world_size") or None,
        world_size=world_size,
        framework_version=text(start, "framework_version") or job.framework_version,
        local_cores=count(start, "local_cores") or None,
        host_cpu=text(start, "host_cpu"),
        parameters=held,
        train=step_sums.total(
            step_sums.of_first_passes([s for s in steps if s.get("optimizer")]), graphs, copies
        ),
        other=step_sums.total([s for s in steps if not s.get("optimizer")], graphs, copies),
        input=_input(counting.loaders, failed=_failed(ranks)) if counting else None,
        graphs=diagnosing.graphs(
            graphs, counting.steps if counting else (), counting.uncut if counting else ()
        ),
        device_memory_peak_bytes=memory.total if memory else None,
        device_memory=memory,
        # The first core of each host reports the same findings. The last record counts: here the lowest rank's.
        diagnostics=diagnosing.findings(record for r in reversed(everything) for record in r.findings),
        seconds=job.seconds,
        programs=tuple(map(_program, ran)) if len(ran) > 1 or any(p.program.trial for p in ran) else None,
    )


def _longest_training_first(ranks: Sequence[RankCounters]) -> list[RankCounters]:
    """One rank of each program (the lowest that ran a step, else the lowest), longest training first, trials last."""
    first: dict[ProgramName, RankCounters] = {}
    for counters in sorted(ranks, key=lambda r: (not r.steps, r.rank)):
        first.setdefault(counters.program, counters)

    def trained(counters: RankCounters) -> tuple[bool, float, int]:
        training = (number(step, "seconds") for step in counters.steps if step.get("optimizer"))
        return not counters.program.trial, sum(training), len(counters.steps)

    return sorted(first.values(), key=trained, reverse=True)


def _program(counters: RankCounters) -> Program:
    script, world_size, trial = counters.program
    return Program(
        script=script,
        world_size=world_size or None,
        steps=len(counters.steps),
        training_steps=sum(bool(step.get("optimizer")) for step in counters.steps),
        trial=trial,
    )


def _first_start(ranks: Sequence[RankCounters]) -> Record:
    """The start record of the lowest rank that has one."""
    for counters in sorted(ranks, key=lambda r: r.rank):
        if counters.starts:
            return counters.starts[0]
    return {}


def _instance_groups(job: Job) -> tuple[InstanceGroup, ...] | None:
    """The instances of each group; None without groups. (`Counters.instance_type` is that of the first group only.)"""
    if not job.request["ResourceConfig"].get("InstanceGroups"):
        return None
    return tuple(
        InstanceGroup(instance_type=g.instance.name, instance_count=len(g.hosts)) for g in groups(job)
    )


def _failed(ranks: Sequence[RankCounters]) -> bool:
    """Whether the script ended with an error in the last attempt."""
    return any(r.ends and text(r.ends[-1], "exit") == "error" for r in ranks)


def _input(found: Sequence[Record], *, failed: bool) -> Input | None:
    """The data loaders' use in the last attempt. Their list is empty if the script failed, as its full extent is then
    unknown; only a rehearsal that failed after its passes, as when it saved the model, keeps the list.
    """
    if not found:
        return None
    record = found[-1]
    rehearsed = count(record, "rehearsed_steps") or None
    listed = record.get("loaders")
    loaders = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    if failed and (rehearsed is None or any(item.get("left") for item in loaders)):
        loaders = []
    return Input(
        rehearsed_steps=rehearsed,
        ended_early=bool(record.get("ended_early")) or (failed and bool(loaders)),
        loaders=tuple(_loader(item) for item in loaders),
    )


def _loader(item: Record) -> Loader:
    def known(key: str) -> int | None:
        return None if item.get(key) is None else count(item, key)

    return Loader(
        line=text(item, "line") or "?",
        batches=known("batches"),
        samples=count(item, "samples"),
        last=known("last"),
        split=bool(item.get("split")),
        sequence_length=known("sequence_length"),
        passes=count(item, "passes"),
        planned=known("planned"),
        taken=count(item, "taken"),
        trains=bool(item.get("trains")),
        left=bool(item.get("left")),
        left_after=known("left_after"),
        bound=known("bound"),
        bound_of_pass=known("bound_of_pass"),
        bound_between=known("bound_between"),
        decides=bool(item.get("decides")),
        wrapped=text(item, "wrapped") or None,
        inside=count(item, "inside"),
        every=None if item.get("every") is None else number(item, "every"),
    )


def _seconds(job: Job, ranks: Iterable[RankCounters], times: ContainerTimes, now: datetime) -> Seconds:
    begun = job.lifecycle.training_start
    ran = (times.finished - times.started).total_seconds() if times.started and times.finished else None
    again = job.lifecycle.count("Downloading") > 1
    since = times.started.timestamp() if again and times.started else 0.0  # start of the last attempt
    ends = (number(step, "time") for r in ranks for step in r.steps if number(step, "time"))
    first_end = min((end for end in ends if end >= since), default=None)
    return Seconds(
        training_total=running_time(job.lifecycle, now).total_seconds() if begun else None,
        container=ran,
        first_step_after=max(0.0, first_end - times.started.timestamp())
        if first_end is not None and times.started is not None
        else None,
    )


def _programs_of(rank: int, paths: Sequence[Path], room: Room) -> Iterator[RankCounters]:
    """The files' records by program: each process of a program begins with a record of kind "start"."""
    found: dict[ProgramName, list[Record]] = {}
    program = ProgramName()
    for record in chain.from_iterable(records(path, room) for path in paths):
        if record.get("kind") == "start":
            program = ProgramName(
                text(record, "script"), count(record, "world_size"), record.get("trial") is True
            )
        found.setdefault(program, []).append(record)
    return (_rank_counters(rank, program, found[program]) for program in found)


def _rank_counters(rank: int, program: ProgramName, found: Sequence[Record]) -> RankCounters:
    """Sort records by kind. If a graph was compiled several times, its compile seconds are added up."""
    of_kind: dict[str, list[Record]] = defaultdict(list)
    graphs: dict[str, Record] = {}
    for record in found:
        kind = text(record, "kind") or ""
        if kind == "graph" and isinstance(record.get("graph"), str):
            name = record["graph"]
            compiled = number(record, "compile_seconds")
            first = graphs.get(name, record)
            before = number(first, "compile_seconds") if name in graphs else 0.0
            # The first record tells whether the graph was in the Neuron cache: later ones always find it there.
            kept = {"cached": first["cached"]} if "cached" in first else {}
            graphs[name] = {**record, **kept, "compile_seconds": compiled + before}
        else:
            of_kind[kind].append(record)
    return RankCounters(
        rank,
        program,
        starts=of_kind["start"],
        graphs=graphs,
        steps=list(map(with_figures, of_kind["step"])),
        ends=of_kind["end"],
        memory=of_kind["memory"],
        findings=of_kind["finding"],
        parameters=of_kind["parameters"],
        loaders=of_kind["loaders"],
        uncut=of_kind["uncut"],
    )
