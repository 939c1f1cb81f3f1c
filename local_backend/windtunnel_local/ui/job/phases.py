"""A job's life as phases with seconds, of which some are billed; and as a bar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from windtunnel_local.service.ground.billed_time import running

_WIDTH, _HEIGHT = 720, 40
_LEAST_WIDTH = 2.0
"""So that no phase is invisible."""
_KINDS = {
    "Starting": "wait",
    "Pending": "wait",
    "Interrupted": "wait",
    "Restarting": "wait",
    "Downloading": "data",
    "Training": "train",
    "Uploading": "data",
}
"""Others are drawn as an end."""


@dataclass(frozen=True)
class Phase:
    """A stretch of a job's life.

    Attributes:
        name: its secondary status.
        start, end: None: it goes on.
        seconds: up to its end, or up to now.
        billed: whether these seconds are billed.
        message: what the service said then.
    """

    name: str
    start: datetime
    end: datetime | None
    seconds: float
    billed: bool
    message: str

    @property
    def kind(self) -> str:
        """How it is drawn: ``wait``, ``data``, ``train``, ``end``."""
        return _KINDS.get(self.name, "end")


def phases(description: Mapping[str, Any], now: datetime) -> list[Phase]:
    """Of a DescribeTrainingJob answer. What a job ends with takes no time, and is none of them."""
    transitions = description.get("SecondaryStatusTransitions", [])
    billed = running(transition["Status"] for transition in transitions)
    found = [
        Phase(
            transition["Status"],
            transition["StartTime"],
            transition.get("EndTime"),
            max(0.0, ((transition.get("EndTime") or now) - transition["StartTime"]).total_seconds()),
            runs,
            transition["StatusMessage"],
        )
        for transition, runs in zip(transitions, billed, strict=True)
    ]
    return [phase for phase in found if phase.end is None or phase.end > phase.start]


def elapsed_s(description: Mapping[str, Any], now: datetime) -> float:
    """Seconds from the job's creation to its end, or to now."""
    last: datetime = description["SecondaryStatusTransitions"][-1].get("EndTime") or now
    begun: datetime = description["CreationTime"]
    return max(0.0, (last - begun).total_seconds())


def billable_s(description: Mapping[str, Any], found: Sequence[Phase]) -> int:
    """What is billed of one instance, or would be if the job ended now; before a discount that only the end settles."""
    settled = description.get("BillableTimeInSeconds")
    return math.ceil(sum(phase.seconds for phase in found if phase.billed)) if settled is None else settled


def timeline(found: Sequence[Phase]) -> Markup:
    """The phases as one bar, in proportion to their seconds. Their table says the same to who does not see it."""
    total = sum(phase.seconds for phase in found)
    room = _WIDTH - _LEAST_WIDTH * len(found)
    parts, x = [], 0.0
    for phase in found:
        width = _LEAST_WIDTH + room * (phase.seconds / total if total > 0 else 1 / len(found))
        parts.append(_block(phase, x, width))
        x += width
    return Markup(
        '<svg class="timeline" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(_WIDTH, _HEIGHT, Markup("").join(parts))


def _block(phase: Phase, x: float, width: float) -> Markup:
    bill = (
        Markup('<rect class="billed" x="{:.1f}" y="34" width="{:.1f}" height="6"/>').format(x, width)
        if phase.billed
        else Markup("")
    )
    return Markup(
        "<g><title>{name}: {seconds:,.1f} s{billed}</title>"
        '<rect class="phase {kind}" x="{x:.1f}" y="0" width="{width:.1f}" height="30"/>{bill}</g>'
    ).format(
        name=phase.name,
        seconds=phase.seconds,
        billed=", billed" if phase.billed else "",
        kind=phase.kind,
        x=x,
        width=width,
        bill=bill,
    )
