"""Pages of a log: whatever order hosts print in, reading on or back gives every line once, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.errors import LogsNotFound
from windtunnel_local.service.observed.logs import LogsService
from windtunnel_local.store.sqlite import SqliteStore
from windtunnel_local.ui.job import log_pages
from windtunnel_local.ui.job.follower import Follower
from windtunnel_local.ui.job.log_pages import ERRORS, JobLog, Line, phrase
from windtunnel_local.ui.job.log_position import START

CONFIG: Any = None  # only ARNs have the account and the region
FEW = settings(max_examples=40)
hosts = st.lists(st.lists(st.integers(0, 30), max_size=90).map(sorted), min_size=1, max_size=4)
"""Of each host the milliseconds at which it prints."""


@contextmanager
def a_log(printed: dict[str, list[tuple[int, str]]]) -> Iterator[JobLog]:
    """A job's log in a record of its own; and another job's, whose name begins alike."""
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "record.sqlite")
        try:
            for name, lines in {
                **{f"job/{s}": lines for s, lines in printed.items()},
                "job-2/algo-1-1": [(5, "no")],
            }.items():
                store.open_log_stream(None, name.split("/")[1].rpartition("-")[0], name, 0)
                store.append_log(name, LogBatch(tuple(LogLine(*line) for line in lines), "1"), 1)
            yield JobLog(LogsService(store, CONFIG), "job")
        finally:
            store.close()


@pytest.fixture(autouse=True)
def _small_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogsService, "_arn", lambda *_: "")


@pytest.fixture(autouse=True)
def _small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pages, "LEAST_SHARE", 3)


def in_order(printed: dict[str, list[tuple[int, str]]]) -> list[str]:
    """All lines by time, host, and place."""
    return [text for _, _, _, text in sorted(
        (moment, stream, place, text)
        for stream, lines in printed.items() for place, (moment, text) in enumerate(lines)
    )]  # fmt: skip


def of(found: list[list[int]]) -> dict[str, list[tuple[int, str]]]:
    """Lines of hosts that print at these moments."""
    return {
        f"algo-{host}-{100 + host}": [(moment, f"{host}.{place}") for place, moment in enumerate(moments)]
        for host, moments in enumerate(found, 1)
    }


@FEW
@given(hosts, st.integers(1, 40))
def test_reading_on_gives_every_line_once_and_in_order(found: list[list[int]], most: int) -> None:
    """From the first line to the last, page by page."""
    printed = of(found)
    with a_log(printed) as log:
        position, lines = START, list[Line]()
        while True:
            page = log.after(position, most, list(log.streams()))
            assert len(page.lines) <= most
            if not page.lines:
                break
            lines += page.lines
            position = page.end
    assert [line.text for line in lines] == in_order(printed)


@FEW
@given(hosts, st.integers(1, 40))
def test_reading_back_gives_every_line_once_and_in_order(found: list[list[int]], most: int) -> None:
    """From the last line to the first; and from each place on again it is the same page."""
    printed = of(found)
    with a_log(printed) as log:
        streams, lines = list(log.streams()), list[Line]()
        page = log.before(None, most, streams)
        while page.lines:
            assert len(page.lines) <= most
            assert page.more is any(page.begin.values())
            lines = [*page.lines, *lines]
            page = log.before(page.begin, most, streams)
    assert [line.text for line in lines] == in_order(printed)


@FEW
@given(hosts, st.data())
def test_around_a_line_are_its_neighbours(found: list[list[int]], data: st.DataObject) -> None:
    """What stands before a line and what stands from it on are the whole log."""
    printed = of(found)
    places = [(stream, number) for stream, lines in printed.items() for number in range(len(lines))]
    if not places:
        return
    stream, number = data.draw(st.sampled_from(places))
    with a_log(printed) as log:
        streams = list(log.streams())
        place = log.place(stream, number, streams)
        before = log.before(place, 1000, streams).lines
        after = log.after(place, 1000, streams).lines
    assert sorted(line.text for line in [*before, *after]) == sorted(in_order(printed))
    moment, text = printed[stream][number]
    assert text in [line.text for line in after if line.time_ms == moment]
    assert all(line.time_ms <= moment for line in before)
    assert all(line.time_ms >= moment for line in after)


@pytest.mark.parametrize(
    "text", ['say "yes"', "back\\slash", "a b", "%d", "[x]", "{$.a}", "-minus", "?what", "ü"]
)
def test_a_search_is_for_the_text_as_it_stands(text: str) -> None:
    """Whatever signs it has; of this job alone; and its place leads to the line."""
    printed = {"algo-1-1": [(1, "other"), (2, f"<{text}>")], "algo-2-1": [(3, text), (4, text[:-1])]}
    with a_log(printed) as log:
        found = log.search(phrase(text), 10)
        assert [(line.stream, line.sequence) for line in found.lines] == [("algo-1-1", 1), ("algo-2-1", 0)]
        assert found.token is None
        assert log.whole("algo-1-1", 1) == f"<{text}>"
        assert [line.stream for line in log.search(phrase(text), 10, host="algo-2").lines] == ["algo-2-1"]
        first = log.search(phrase(text), 1)
        assert [line.sequence for line in log.search(phrase(text), 10, first.token).lines] == [0]


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        ("Traceback (most recent call last):", True),
        ("ValueError: x", True),
        ("2026-01-31 ERROR   Reporting training FAILURE", True),
        ("error: train.py:3: the model is on the CPU", True),
        ("step 3, 0 errors", False),
    ],
)
def test_lines_that_tell_of_an_error(line: str, tells: bool) -> None:
    """As Python, AWS's toolkit and the simulator write them."""
    with a_log({"algo-1-1": [(1, "fine"), (2, line)]}) as log:
        assert [found.sequence for found in log.search(ERRORS, 1).lines] == ([1] if tells else [])


def test_what_is_not_there_is_none() -> None:
    """A line beyond the end, or of a stream that nobody knows."""
    with a_log({"algo-1-1": [(1, "x")]}) as log:
        assert log.whole("algo-1-1", 5) is None
        assert log.whole("algo-9-1", 0) is None
        assert list(log.all_of("algo-1-1")) == ["x\n"]


def test_a_page_of_long_lines_loses_none() -> None:
    """An answer that ended for its size is known to have more behind it."""
    long = "x" * 400_000
    printed = {
        "algo-1-1": [(n, f"{n} {long}") for n in range(8)],
        "algo-2-1": [(n, f"{n} short") for n in range(8)],
    }
    with a_log(printed) as log:
        position, found = START, list[tuple[int, str]]()
        while page := log.after(position, 100, list(log.streams())).lines:
            found += [(line.time_ms, line.stream) for line in page]
            position = {**position, **{line.stream: line.sequence + 1 for line in page}}
    assert found == sorted(found)
    assert len(found) == 16


def test_a_whole_log_ends_where_it_was_when_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that prints faster than a reader reads does not keep him for ever. Many lines are one piece."""
    monkeypatch.setattr(log_pages, "MAX_EVENTS", 2)
    with closing(SqliteStore(tmp_path / "record.sqlite")) as store:
        store.open_log_stream(None, "algo-1", "job/algo-1-1", 0)

        def lines(*texts: str) -> None:
            batch = LogBatch(tuple(LogLine(1, text) for text in texts), "1")
            store.append_log("job/algo-1-1", batch, 1)

        lines("0", "1", "2", "3", "4")
        pieces = JobLog(LogsService(store, CONFIG), "job").all_of("algo-1-1")
        first = next(pieces)
        lines("5", "6")
        assert [first, *pieces] == ["0\n1\n", "2\n3\n", "4\n"]


def test_a_job_that_is_deleted_while_it_is_looked_at_ends_in_words() -> None:
    """Its log goes between two looks, or within one."""

    def gone(*_: Any, **__: Any) -> Any:
        raise LogsNotFound("The specified log stream does not exist.")

    logs = SimpleNamespace(
        describe_log_streams=lambda *_, **__: {"logStreams": [{"logStreamName": "job/algo-1-1"}]},
        get_log_events=gone,
    )
    jobs = SimpleNamespace(describe=lambda _: {"TrainingJobStatus": "InProgress"})
    backend: Any = SimpleNamespace(jobs=jobs, logs=logs)
    follower = Follower(backend, "job", lambda *_: "", START, None)
    assert follower.look() == {"end": "The job has been deleted."}
    assert follower.ended
