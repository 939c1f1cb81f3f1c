"""Makes steps.json: when each step ran and what it spent its time on, of all hosts in one document.

The simulator records steps on the first core of each host: when a step ended, how long it took, and sums of what it
spent its time on, without their order within the step. Records that the script wrote itself, or whose times are
impossible, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel_local.service.observed.counter_records import Record, count, number
from windtunnel_local.service.observed.metering import RankCounters

SCHEMA = "windtunnel.steps/1"
COLUMNS = (
    "end_s", "seconds", "training", "samples", "collective_s", "input_wait_s", "compile_s", "trace_s",
)  # fmt: skip
"""The columns of a step; times are of this machine. ``end_s``: its end, since ``begin``; ``trace_s``: CPU time."""
MOST_STEPS = 100_000
"""Most steps of a job: about 6 MB. The first steps are kept, equally many of each core."""
_LONGEST_S, _LATEST_S = 1e8, 1e11


@dataclass(frozen=True)
class HostSteps:
    """The records of a host's first core, by program."""

    host: str
    ranks: Sequence[RankCounters]


def steps_document(job: str, hosts: Sequence[HostSteps]) -> dict[str, Any] | None:
    """The document; None if no step ran."""
    cores = [(one.host, rank, list(_possible(rank.steps))) for one in hosts for rank in one.ranks]
    cores = [core for core in cores if core[2]]
    if not cores:
        return None
    begin = min(number(step, "time") - number(step, "seconds") for _, _, steps in cores for step in steps)
    each = max(1, MOST_STEPS // len(cores))
    return {
        "schema": SCHEMA,
        "job": job,
        "begin": round(begin, 6),
        "columns": list(COLUMNS),
        "cores": [
            {
                "host": host,
                "rank": rank.rank,
                "script": rank.program[0],
                "left_out": max(0, len(steps) - each),
                "steps": [_row(step, begin) for step in steps[:each]],
            }
            for host, rank, steps in cores
        ],
    }


def _possible(steps: Iterable[Record]) -> Iterable[Record]:
    return (
        step
        for step in steps
        if 0 < number(step, "seconds") <= _LONGEST_S and 0 < number(step, "time") <= _LATEST_S
    )


def _row(step: Record, begin: float) -> list[float | int]:
    return [
        round(number(step, "time") - begin, 6),
        number(step, "seconds"),
        int(bool(step.get("optimizer"))),
        min(count(step, "samples"), 2**53),
        *(number(step, f"{name}_seconds") for name in ("collective", "input_wait", "compile", "trace")),
    ]
