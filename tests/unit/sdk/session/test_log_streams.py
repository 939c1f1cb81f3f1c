"""A log of several streams: whatever is written between two calls, each line is given once, in its stream's order."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.sdk.fake_service import FakeService
from windtunnel.job.log import LogFollower
from windtunnel.session.log_streams import LogStreams
from windtunnel.session.training_service import LogLine

STREAMS = ("job/algo-1-1", "job/algo-1-2", "job/algo-2-1")
PAGE = 2


class Log:
    """Streams as GetLogEvents gives them: pages of two lines, and at the end the token that was sent."""

    def __init__(self) -> None:
        self.written: defaultdict[str, list[str]] = defaultdict(list)

    def write(self, stream: str, lines: int) -> None:
        there = self.written[stream]
        there += [f"{stream} {len(there) + number}" for number in range(lines)]

    def read(self, stream: str, token: str | None) -> tuple[list[LogLine], str]:
        begin = int(token or 0)
        page = self.written[stream][begin : begin + PAGE]
        return [LogLine(0, f"{text}\n") for text in page], str(begin + len(page))


@given(st.lists(st.lists(st.tuples(st.sampled_from(STREAMS), st.integers(0, 5))), max_size=6))
def test_each_line_is_given_once(rounds: list[list[tuple[str, int]]]) -> None:
    """Also of streams that begin later, as those of a job's second attempt do."""
    log = Log()
    reader = LogStreams(lambda: list(log.written), log.read)
    given_out: defaultdict[str, list[str]] = defaultdict(list)
    for writes in rounds:
        for stream, lines in writes:
            log.write(stream, lines)
        for stream, line in reader.lines():
            given_out[stream].append(line)
        assert {name: lines for name, lines in log.written.items() if lines} == given_out


def test_a_reader_that_stopped_amid_a_page_goes_on_behind_it() -> None:
    """No line comes twice."""
    log = Log()
    log.write("job/algo-1-1", 5)
    reader = LogStreams(lambda: list(log.written), log.read)
    assert next(reader.lines()) == ("job/algo-1-1", "job/algo-1-1 0")
    assert [line for _, line in reader.lines()] == [f"job/algo-1-1 {number}" for number in (2, 3, 4)]


def test_the_second_host_may_begin_later() -> None:
    service = FakeService()
    follower = LogFollower(service, "job", {"ResourceConfig": {"InstanceCount": 2}})
    service.printed["job/algo-1-1"] = ["one"]
    assert list(follower.read()) == ["[algo-1] one"]
    service.printed["job/algo-2-1"] = ["two"]
    assert list(follower.read()) == ["[algo-2] two"]


@pytest.mark.parametrize(
    "starts_again", [{"EnableManagedSpotTraining": True}, {"RetryStrategy": {"MaximumRetryAttempts": 1}}]
)
def test_the_stream_of_a_second_attempt_is_found(starts_again: dict[str, object]) -> None:
    """A job on one host has one stream, unless it may start again. Its lines have no stream's name before them."""
    service = FakeService()
    follower = LogFollower(service, "job", {"ResourceConfig": {"InstanceCount": 1}, **starts_again})
    service.printed["job/algo-1-1"] = ["first attempt"]
    assert list(follower.read()) == ["first attempt"]
    service.printed["job/algo-1-2"] = ["second attempt", "its second line"]
    assert list(follower.read()) == ["second attempt", "its second line"]
