"""Reads steps.json as steps on lanes. The job's own code may have written that file: invalid steps are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from windtunnel_local.service.observed.step_times import COLUMNS, MOST_STEPS, SCHEMA

PARTS = ("compilation", "input wait", "collectives", "host", "the rest")
"""The parts into which a step's seconds are divided, in the order in which they are drawn."""
_LATEST_S = 1e9
_LATEST_BEGIN = 1e11
_MOST_LANES = 256


@dataclass(frozen=True)
class Step:
    """A step of one core. ``number``: from 1, on its lane. Times are seconds since the first step began.

    ``parts``: seconds of each of `PARTS`; they add up to ``seconds``. Only these sums are known, not their order.
    """

    number: int
    begin_s: float
    end_s: float
    seconds: float
    training: bool
    samples: int
    parts: tuple[float, ...]


@dataclass(frozen=True)
class Lane:
    """The steps of one script on one core, by time. ``left_out``: how many more there were."""

    host: str
    rank: int
    script: str
    steps: Sequence[Step]
    left_out: int

    @property
    def name(self) -> str:
        """The lane's name: ``algo-1, rank 0``, and the script if it is known."""
        return f"{self.host}, rank {self.rank}{f', {self.script}' if self.script else ''}"


@dataclass(frozen=True)
class Steps:
    """All lanes. ``begin``: when the first step began, in Unix seconds."""

    begin: float
    lanes: Sequence[Lane]


def read(document: Mapping[str, Any] | None) -> Steps | None:
    """Read the document; None if it is missing, of another form, or without a step."""
    if document is None or document.get("schema") != SCHEMA or document.get("columns") != list(COLUMNS):
        return None
    listed = document.get("cores")
    cores = listed[:_MOST_LANES] if isinstance(listed, list) else []
    lanes = [lane for core in cores for lane in _lanes(core, MOST_STEPS // len(cores))]
    begin = document.get("begin")
    if not lanes or not _within(begin, 0, _LATEST_BEGIN):
        return None
    return Steps(float(begin), lanes)


def _lanes(core: Any, most: int) -> Iterator[Lane]:
    if not isinstance(core, Mapping) or not isinstance(core.get("steps"), list):
        return
    steps: list[Step] = []
    for row in core["steps"][:most]:
        if _is_step(row):
            steps.append(_step(len(steps) + 1, row, steps[-1].end_s if steps else 0.0))
    rank, more, script = core.get("rank"), core.get("left_out"), core.get("script")
    if steps:
        yield Lane(
            str(core.get("host", "?"))[:100],
            int(rank) if _within(rank, 0, 1e9) else 0,
            script[:100] if isinstance(script, str) else "",
            steps,
            int(more) if _within(more, 0, 1e12) else 0,
        )


def _is_step(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == len(COLUMNS)
        and all(_within(value, 0, _LATEST_S if place != 3 else 2**53) for place, value in enumerate(row))
        and row[1] > 0
    )


def _within(value: Any, least: float, most: float) -> TypeGuard[float]:
    return isinstance(value, int | float) and least <= value <= most  # False for NaN


def _step(number: int, row: Sequence[float], before_s: float) -> Step:
    end, seconds, training, samples, collective, waited, compiled, traced = row
    # Steps must not overlap, though clocks may be set, and older images recorded a step a moment after its end.
    end = max(end, before_s)
    begin = max(end - seconds, before_s)
    left, parts = seconds, []
    for part in (compiled, waited, collective, traced):
        # The parts are measured by different clocks, and may add up to a little more than the step.
        parts.append(min(part, left))
        left -= parts[-1]
    return Step(number, begin, end, seconds, bool(training), int(samples), (*parts, max(0.0, left)))
