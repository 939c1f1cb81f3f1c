"""The state machine of a job."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.service.ground import lifecycle as events
from windtunnel_local.service.ground.billed_time import billable_seconds, running_time, training_seconds
from windtunnel_local.service.ground.errors import IllegalTransition
from windtunnel_local.service.ground.job import Lifecycle, SpotTerms
from windtunnel_local.service.ground.lifecycle import advance, begin

START = datetime(2026, 1, 2, tzinfo=timezone.utc)

EVENTS: st.SearchStrategy[events.Event] = st.one_of(
    st.builds(events.ProvisioningProgress, st.text(max_size=5)),
    st.just(events.DownloadStarted()),
    st.just(events.TrainingStarted()),
    st.just(events.StopRequested()),
    st.just(events.MaxRuntimeReached()),
    st.just(events.MaxWaitReached()),
    st.just(events.MaxPendingReached()),
    st.builds(events.Queued, st.text(max_size=5)),
    st.builds(events.SpotInterrupted, st.text(max_size=5)),
    st.builds(events.Lost, st.text(max_size=5)),
    st.just(events.Restarted()),
    st.builds(events.UploadStarted, st.none() | st.just("it broke")),
    st.just(events.Succeeded()),
    st.builds(events.Failed, st.just("it broke")),
    st.just(events.Stopped()),
)

ATTEMPT = ["Starting", "Pending", "Downloading", "Training", "Interrupted", "Restarting"]
END = ["Stopping", "Uploading"]
RUNNING = {"Downloading", "Training", "Stopping", "Uploading"}


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
    consistent_path(life)
    if life.training_start is not None:
        assert life.training_end is None or life.training_end >= life.training_start
    ran = running_time(life, clock).total_seconds()
    assert ran <= sum(
        (max(clock, t.end or clock, t.start) - t.start).total_seconds()
        for t in life.transitions
        if t.status in RUNNING
    )
    spot = SpotTerms(3, 0, 60.0, discount=0.7)
    assert (billable_seconds(life, spot) or 0) <= (billable_seconds(life) or 0)
    assert (life.status == "Failed") == (life.secondary == "Failed")


def consistent_path(life: Lifecycle) -> None:
    """Attempt after attempt, each forward only; then the end, forward only; and nothing after it."""
    *attempts, last = attempts_of(path(life))
    for attempt in attempts:
        assert attempt[-1] in ("Interrupted", "Restarting"), attempt
        assert set(attempt) <= set(ATTEMPT), attempt
        assert attempt[-1] != "Interrupted" or attempt[-2] == "Training", attempt
    for attempt in (*attempts, last):
        places = [(ATTEMPT + END).index(status) for status in attempt if status in ATTEMPT + END]
        assert places == sorted(set(places)), attempt
        assert attempt[0] == "Starting", attempt
    assert life.training_start is None or "Downloading" in path(life)


def attempts_of(statuses: list[str]) -> list[list[str]]:
    """Cut before each Starting."""
    attempts: list[list[str]] = []
    for status in statuses:
        if status == "Starting":
            attempts.append([])
        attempts[-1].append(status)
    return attempts


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


def test_a_stop_while_uploading_ends_that() -> None:
    """The job is Stopping at once; it has Completed if all was stored when the stop came."""
    uploading = run(events.DownloadStarted(), events.TrainingStarted(), events.UploadStarted())
    stopping = advance(uploading, events.StopRequested(), at(90))
    assert (stopping.status, stopping.secondary) == ("Stopping", "Uploading")
    assert advance(stopping, events.StopRequested(), at(91)) == stopping
    stopped = advance(stopping, events.Stopped(), at(92))
    assert (stopped.status, stopped.secondary, stopped.training_end) == ("Stopped", "Stopped", at(92))
    assert advance(stopping, events.Succeeded(), at(92)).status == "Completed"
    assert advance(stopping, events.Failed("AlgorithmError: x"), at(92)).status == "Failed"


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


def test_an_interruption_is_no_end() -> None:
    """The path is that of AWS's documentation, and the time between two attempts is not trained."""
    life = run(
        events.DownloadStarted(),
        events.TrainingStarted(),
        events.SpotInterrupted("taken away"),
        events.Restarted(),
        events.DownloadStarted(),
        events.TrainingStarted(),
        events.UploadStarted(),
        events.Succeeded(),
    )
    assert path(life) == [
        *["Starting", "Downloading", "Training", "Interrupted"],
        *["Starting", "Downloading", "Training", "Uploading", "Completed"],
    ]
    assert life.transitions[3].message == "taken away"
    assert (life.training_start, life.training_end) == (at(10), at(80))
    assert training_seconds(life) == 20 + 30
    assert billable_seconds(life, SpotTerms(1, 0, 60.0, discount=0.7)) == 15


def test_the_discount_is_taken_from_whole_seconds_once() -> None:
    """No floating point adds a second, and something is always billed that ran."""
    life = run(events.DownloadStarted(), events.TrainingStarted(), events.UploadStarted(), events.Succeeded())
    assert [billable_seconds(life, SpotTerms(0, 0, 60.0, discount=d)) for d in (0.0, 0.7, 0.9, 1.0)] == [
        *[30, 9, 3, 1]
    ]


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ([events.MaxWaitReached(), events.Stopped()], "MaxWaitTimeExceeded"),
        ([events.Queued("full"), events.MaxWaitReached(), events.Stopped()], "MaxWaitTimeExceeded"),
        ([events.Queued("full"), events.MaxPendingReached(), events.Stopped()], "Stopped"),
        (
            [
                events.DownloadStarted(),
                events.TrainingStarted(),
                events.SpotInterrupted("x"),
                events.MaxWaitReached(),
                events.UploadStarted(),
                events.Stopped(),
            ],
            "MaxWaitTimeExceeded",
        ),
    ],
)
def test_limits_of_waiting_end_as_stopped(steps: list[events.Event], last: str) -> None:
    """The status is Stopped, and the last transition says which limit it was."""
    life = run(*steps)
    assert (life.status, life.secondary) == ("Stopped", last)
    assert "exceeded Max" in life.transitions[-1].message
