"""Phases of a job: their seconds, which of them are billed, and their picture."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.wire import create_request
from windtunnel_local.service import answers
from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.billed_time import training_seconds
from windtunnel_local.service.ground.job import Job
from windtunnel_local.ui.job.phases import billable_s, elapsed_s, phases, timeline

BEGIN = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
EVENTS: tuple[lifecycle.Event, ...] = (
    lifecycle.DownloadStarted(), lifecycle.TrainingStarted(), lifecycle.SpotInterrupted("gone"), lifecycle.Restarted(),
    lifecycle.DownloadStarted(), lifecycle.TrainingStarted(), lifecycle.UploadStarted(), lifecycle.Succeeded(),
)  # fmt: skip


def described(*seconds: float) -> tuple[dict[str, Any], Job]:
    """A job after the first so many of `EVENTS`, each so many seconds after the one before."""
    life, now = lifecycle.begin(BEGIN), BEGIN
    for event, passed in zip(EVENTS, seconds, strict=False):
        now += timedelta(seconds=passed)
        life = lifecycle.advance(life, event, now)
    job = Job("job", "arn", create_request(), life)
    return answers.described(job), job


def test_phases_of_an_interrupted_job() -> None:
    """What lies between two attempts is not billed; the end is no phase."""
    found = phases(described(1, 2, 4, 8, 16, 32, 64, 128)[0], BEGIN)
    assert [(phase.name, phase.seconds, phase.billed) for phase in found] == [
        ("Starting", 1, False), ("Downloading", 2, True), ("Training", 4, True), ("Interrupted", 8, False),
        ("Starting", 16, False), ("Downloading", 32, True), ("Training", 64, True), ("Uploading", 128, True),
    ]  # fmt: skip


@given(st.lists(st.floats(0, 1e6), max_size=8))
def test_billed_phases_are_what_is_billed(seconds: list[float]) -> None:
    """However long each takes, and wherever the job is: marked seconds add up to the service's own figure."""
    description, job = described(*seconds)
    now = job.lifecycle.modified
    found = phases(description, now)
    settled = training_seconds(job.lifecycle)
    if settled is not None:
        assert billable_s(description, found) == settled
        assert abs(sum(phase.seconds for phase in found if phase.billed) - settled) <= 1
    assert elapsed_s(description, now) <= sum(seconds[: len(EVENTS)]) + 1e-3
    picture = ElementTree.fromstring(str(timeline(found)))  # noqa: S314  ours
    widths = [float(one.attrib["width"]) for one in picture.iter("rect") if "phase" in one.attrib["class"]]
    assert not found or abs(sum(widths) - 720) < 1


def test_a_phase_that_goes_on_lasts_until_now() -> None:
    """Its seconds grow."""
    (_, _, training) = phases(described(1, 2)[0], BEGIN + timedelta(seconds=10))
    assert (training.name, training.seconds, training.end) == ("Training", 7, None)
