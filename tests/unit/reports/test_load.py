"""Load on an endpoint: what is sent when, and what is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from windtunnel.errors import BackendError, ConfigurationError, ServiceCallFailed
from windtunnel.reports.inference.load import Answers, Load, send
from windtunnel.reports.inference.measured import MeasuredInferenceReport


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.time = 100.0
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        with self._lock:
            self.time += seconds

    def answers(self, load: Load, ask: Callable[[], None]) -> Answers:
        """To that load, in this time."""
        return send(load, ask, now=self.now, sleep=self.sleep)


def stalled(first_s: float) -> Answers:
    """Four questions, 0.1 s apart, to one client, which gets its first answer late."""
    clock = Clock()
    waits = iter([first_s, 0.0, 0.0, 0.0])
    return clock.answers(Load(0.4, 10.0, clients=1), lambda: clock.sleep(next(waits)))


def test_at_a_rate_a_stalled_answer_delays_those_behind_it() -> None:
    """Questions stay due at even intervals; a latency counts from when its question was due."""
    answers = stalled(0.35)
    assert answers.latencies_s == pytest.approx([0.35, 0.25, 0.15, 0.05])
    assert answers.percentile_s(50) == pytest.approx(0.15) and answers.percentile_s(99) == pytest.approx(0.35)
    assert (answers.asked, answers.unsent) == (4, 0)


def test_what_found_no_client_in_time_is_not_sent_but_counted() -> None:
    """So a load that is far too high ends, and says so."""
    answers = stalled(1.3)
    assert answers.latencies_s == pytest.approx([1.3])
    assert (answers.asked, answers.unsent) == (1, 3)
    clock = Clock()
    answers = clock.answers(Load(1_000.0, 1_000_000.0, clients=1), lambda: clock.sleep(400))
    assert (answers.asked, answers.unsent) == (3, 10**9 - 3), "what is due is counted, not held"


def test_one_question_and_one_client_are_one() -> None:
    """In the headline, as in the other lines."""
    for load, unsent, said in (
        (Load(0.4, 10.0, clients=1), 1, "1 question was due and not sent: the client still waited"),
        (Load(0.4, 10.0, clients=2), 3, "3 questions were due and not sent: all 2 clients still waited"),
    ):
        report = MeasuredInferenceReport("e", True, load, Answers([1.3], unsent=unsent, took_s=1.3))
        assert report.document().headline == (f"{said} for answers.",)


@pytest.mark.parametrize(
    ("answers", "behind"),
    [
        (Answers([2.0] * 10, took_s=11.0), False),
        (Answers([0.1] * 5, Counter({"ModelError: no": 5}), took_s=9.1), False),
        (Answers([0.5 + n for n in range(10)], took_s=18.5), True),
    ],
)
def test_who_keeps_up_is_not_said_to_fall_behind(answers: Answers, behind: bool) -> None:
    """A slow model answers each question in its time, and one that fails is no slow one: only a queue is behind."""
    report = MeasuredInferenceReport("e", True, Load(10.0, 1.0, clients=50), answers)
    assert any("did not keep up" in line for line in report.document().headline) is behind


def test_what_interrupts_it_ends_it() -> None:
    """The other clients ask no more: the time that is left is not waited for."""
    asked: list[None] = []

    def ask() -> None:
        asked.append(None)
        if len(asked) == 1:
            raise KeyboardInterrupt
        time.sleep(0.01)

    begun = Clock()
    with pytest.raises(KeyboardInterrupt):
        send(Load(1.0, None, clients=2), ask, now=lambda: begun.now() + len(asked) / 500, sleep=begun.sleep)
    assert len(asked) < 500


def test_without_a_rate_each_client_asks_again_at_once() -> None:
    """Until the time is over; the throughput is that of answers."""
    clock = Clock()
    answers = clock.answers(Load(2.0, None, clients=1), lambda: clock.sleep(0.5))
    assert answers.latencies_s == [0.5] * 4
    assert (answers.took_s, answers.throughput_per_s) == (2.0, 2.0)


def test_errors_are_counted_by_what_failed_and_are_no_answers() -> None:
    """A refused question ends nothing; what is no error of a call comes out."""
    clock = Clock()
    outcomes = iter(
        [None, ServiceCallFailed("InvokeEndpoint", "ModelError", "no"), BackendError("gone"), None]
    )

    def ask() -> None:
        clock.sleep(1.0)
        outcome = next(outcomes)
        if outcome is not None:
            raise outcome

    answers = clock.answers(Load(4.0, None, clients=1), ask)
    assert answers.errors == {"ModelError: no": 1, "BackendError": 1}
    assert (answers.asked, len(answers.latencies_s), answers.throughput_per_s) == (4, 2, 0.5)
    with pytest.raises(ZeroDivisionError):
        send(Load(1.0, None, clients=1), lambda: 1 / 0)


def test_no_answer_has_no_latency() -> None:
    """Nor a throughput."""

    def ask() -> None:
        clock.sleep(1.0)
        raise ServiceCallFailed("InvokeEndpoint", "ModelError", "no")

    clock = Clock()
    answers = clock.answers(Load(1.0, None, clients=1), ask)
    assert answers.percentile_s(50) is None and answers.throughput_per_s == 0


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"duration_s": 0}, "duration must be above 0"),
        ({"duration_s": 1, "rate_per_s": -1}, "rate must be above 0"),
        ({"duration_s": 1, "rate_per_s": 1e300}, "rate must be above 0 and at most 1,000,000"),
        ({"duration_s": 1, "rate_per_s": float("nan")}, "rate must be above 0"),
        ({"duration_s": 1, "clients": 0}, "clients must be 1 or more"),
    ],
)
def test_a_load_that_is_none_is_refused(load: dict[str, float], message: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigurationError, match=message):
        Load(**load)  # type: ignore[arg-type]
