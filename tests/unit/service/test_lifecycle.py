"""The state machine of a job."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel_local.service import lifecycle as events
from windtunnel_local.service.billing import billable_seconds
from windtunnel_local.service.errors import IllegalTransition
from windtunnel_local.service.lifecycle import advance, begin
from windtunnel_local.service.model import Lifecycle

START = datetime(2026, 1, 2, tzinfo=timezone.utc)

EVENTS: st.SearchStrategy[events.Event] = st.one_of(
    st.builds(events.ProvisioningProgress, st.text(max_size=5)),
    st.just(events.DownloadStarted()),
    st.just(events.TrainingStarted()),
    st.just(events.StopRequested()),
    st.just(events.MaxRuntimeReached()),
    st.builds(events.UploadStarted, st.none() | st.just("it broke")),
    st.just(events.Succeeded()),
    st.builds(events.Failed, st.just("it broke")),
    st.just(events.Stopped()),
)

ORDER = ["Starting", "Downloading", "Training", "Stopping", "Uploading"]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def run(*steps: events.Event) -> Lifecycle:
    """A lifecycle with ten seconds between its events."""
    life = begin(START)
    for i, step in enumerate(steps, start=1):
        life = advance(life, step, at(10 * i))
    return life


def path(life: Lifecycle) -> list[str]:
    return [transition.status for transition in life.transitions]


@settings(deadline=None)
@given(st.lists(st.tuples(EVENTS, st.floats(-100, 1000)), max_size=25))
def test_any_sequence_of_events(steps: list[tuple[events.Event, float]]) -> None:
    """Whatever happens in whatever order, with a clock that jumps: the record stays consistent."""
    life, clock = begin(START), START
    for step, passed in steps:
        clock += timedelta(seconds=passed)
        before = life
        try:
            life = advance(life, step, clock)
        except IllegalTransition:
            assert life is before
            continue
        assert not before.finished, "terminal is final"
        assert life.modified >= before.modified
        assert life.transitions[: len(before.transitions) - 1] == before.transitions[:-1]
    moments = [life.created]
    for earlier, later in zip(life.transitions, life.transitions[1:], strict=False):
        assert earlier.end == later.start, "no gap and no overlap"
    for transition in life.transitions:
        moments += [transition.start] + ([transition.end] if transition.end else [])
    assert moments == sorted(moments)
    assert (life.transitions[-1].end is not None) == life.finished
    assert life.transitions[-1].status == life.secondary
    middle = [ORDER.index(status) for status in path(life) if status in ORDER]
    assert middle == sorted(set(middle)), "forward only"
    if life.training_start is not None:
        assert life.training_end is None or life.training_end >= life.training_start
    assert (billable_seconds(life) or 0) >= 0
    assert (life.status == "Failed") == (life.secondary == "Failed")


def test_a_job_that_succeeds() -> None:
    """Statuses, messages and times are those of a SageMaker job."""
    life = run(events.DownloadStarted(), events.TrainingStarted(), events.UploadStarted(), events.Succeeded())
    assert (life.status, life.secondary) == ("Completed", "Completed")
    assert [(t.status, t.message) for t in life.transitions] == [
        ("Starting", "Preparing the instances for training"),
        ("Downloading", "Downloading input data"),
        ("Training", "Training image download completed. Training in progress."),
        ("Uploading", "Uploading generated training model"),
        ("Completed", "Training job completed"),
    ]
    assert (life.training_start, life.training_end) == (at(10), at(40))
    assert billable_seconds(life) == 30


def test_a_stop_before_the_download_costs_nothing() -> None:
    """Provisioning is not billed: without a download there is no TrainingStartTime."""
    life = run(events.StopRequested(), events.Stopped())
    assert (life.status, path(life)) == ("Stopped", ["Starting", "Stopping", "Stopped"])
    assert life.training_start is None
    assert life.training_end is None
    assert billable_seconds(life) is None


def test_a_stop_in_training_uploads() -> None:
    """The status is Stopping until the model is stored."""
    stopping = run(
        events.DownloadStarted(), events.TrainingStarted(), events.StopRequested(), events.UploadStarted()
    )
    assert (stopping.status, stopping.secondary) == ("Stopping", "Uploading")
    life = advance(stopping, events.Stopped(), at(99))
    assert (life.status, life.secondary) == ("Stopped", "Stopped")
    assert life.transitions[-1].message == "Training job stopped"


def test_max_runtime() -> None:
    """It ends as Stopped with MaxRuntimeExceeded, as on AWS; a later stop does not change the cause."""
    life = run(
        events.DownloadStarted(),
        events.TrainingStarted(),
        events.MaxRuntimeReached(),
        events.StopRequested(),
        events.UploadStarted(),
        events.Stopped(),
    )
    assert (life.status, life.secondary) == ("Stopped", "MaxRuntimeExceeded")
    assert life.transitions[-1].message == "Training job runtime exceeded MaxRuntimeInSeconds provided"


def test_a_script_that_fails_uploads_and_fails() -> None:
    """The reason is known before the upload, and the job can only fail then."""
    life = run(events.DownloadStarted(), events.TrainingStarted(), events.UploadStarted("AlgorithmError: x"))
    assert (life.status, life.failure_reason) == ("InProgress", "AlgorithmError: x")
    with pytest.raises(IllegalTransition):
        advance(life, events.Succeeded(), at(99))
    assert advance(life, events.Failed("AlgorithmError: x"), at(99)).training_end == at(99)


@pytest.mark.parametrize(
    "event",
    [events.TrainingStarted(), events.UploadStarted(), events.Succeeded(), events.Stopped()],
)
def test_illegal_events_raise(event: events.Event) -> None:
    """A step that the picture does not show is a bug and says so."""
    with pytest.raises(IllegalTransition, match="not allowed while Starting"):
        advance(begin(START), event, at(1))


def test_progress_shows_in_the_starting_message() -> None:
    """A user sees how far the image is."""
    life = run(events.ProvisioningProgress("step 3 of 9"))
    assert life.transitions[-1].message == "step 3 of 9"


def test_started_seconds_are_billed() -> None:
    """By the second, no minimum but that one."""
    life = begin(START)
    life = advance(life, events.DownloadStarted(), at(0))
    assert billable_seconds(advance(life, events.Failed("x"), at(0))) == 1
    assert billable_seconds(advance(life, events.Failed("x"), at(7.2))) == 8
