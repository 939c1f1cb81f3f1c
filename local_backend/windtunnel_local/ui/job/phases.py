"""The phases of a job (its secondary statuses) with their seconds, and which are billed; and a bar that shows them."""

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
"""The smallest width of a phase, so that each is visible."""
_KINDS = {
    "Starting": "wait",
    "Pending": "wait",
    "Interrupted": "wait",
    "Restarting": "wait",
    "Downloading": "data",
    "Training": "train",
    "Uploading": "data",
}
"""How each phase is drawn; all others are drawn as an end."""


@dataclass(frozen=True)
class Phase:
    """One phase of a job.

    Attributes:
        name: its secondary status.
        start, end: ``end`` is None while the phase lasts.
        seconds: until its end, or until now.
        billed: whether these seconds are billed.
        message: the status message of the service.
    """

    name: str
    start: datetime
    end: datetime | None
    seconds: float
    billed: bool
    message: str

    @property
    def kind(self) -> str:
        """How the phase is drawn: ``wait``, ``data``, ``train``, ``end``."""
        return _KINDS.get(self.name, "end")


def phases(description: Mapping[str, Any], now: datetime) -> list[Phase]:
    """The phases in an answer of DescribeTrainingJob, without the final status, which takes no time."""
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
    """Billable seconds of one instance, as if the job ended now if it runs; a spot discount counts only at the end."""
    settled = description.get("BillableTimeInSeconds")
    return math.ceil(sum(phase.seconds for phase in found if phase.billed)) if settled is None else settled


def timeline(found: Sequence[Phase]) -> Markup:
    """The phases as one bar, in proportion to their seconds. The page's table says the same for screen readers."""
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
