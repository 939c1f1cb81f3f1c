"""Logs are read by position: what a page costs does not depend on where it is, nor on how many streams there are.

Cost is counted in steps of SQLite's machine, not in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.unit.service.samples import config
from tests.unit.store.samples import Steps, batch, named
from windtunnel_local.service.observed.log_merge import Merged
from windtunnel_local.service.observed.logs import GROUP, LogsService
from windtunnel_local.store import SqliteStore

LINES = 100_000
STREAMS = 5_000
LONG = "long/algo-1-1"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """One long stream, and many short ones of three lines, each begun a second after the other."""
    folder = tmp_path_factory.mktemp("logs")
    store = SqliteStore(folder / "state.sqlite")
    store.insert_job(named(folder, "long"))
    store.insert_job(named(folder, "short"))
    store.open_log_stream("long", "algo-1", LONG, 1)
    with store.database.transaction() as db:
        db.executemany(
            "INSERT INTO log_events VALUES (1, ?1, ?1 * 10, 1, 'line')", ((i,) for i in range(LINES))
        )
        db.execute(
            "UPDATE log_streams SET events = ?, first_event_ms = 0, last_event_ms = ?", (LINES, 10 * LINES)
        )
        db.executemany(
            "INSERT INTO log_streams (id, name, job, host, created_ms, first_event_ms, last_event_ms, events)"
            " VALUES (?, ?, 'short', 'algo-1', 1, ?, ?, 3)",
            (
                (i + 2, f"short-{i:05}/algo-1-1", 10**9 + 1000 * i, 10**9 + 1000 * i + 20)
                for i in range(STREAMS)
            ),
        )
        db.executemany(
            "INSERT INTO log_events VALUES (?, ?, ?, 1, 'line')",
            ((i + 2, s, 10**9 + 1000 * i + 10 * s) for i in range(STREAMS) for s in range(3)),
        )
    yield store
    store.close()


@pytest.mark.parametrize("limit", [10, 1000])
def test_a_page_of_a_long_stream(full: SqliteStore, limit: int) -> None:
    """By sequence and by time, forwards and backwards: the end is as near as the beginning."""
    steps = Steps(full)
    head = steps.of(lambda: full.read_log(LONG, 0, limit))
    assert head > 0
    ways = {
        "far": lambda: full.read_log(LONG, LINES - limit, limit),
        "behind the end": lambda: full.read_log(LONG, LINES, limit),
        "last": lambda: full.read_log_before(LONG, LINES, limit),
        "since a late moment": lambda: full.read_log(LONG, 0, limit, start_ms=10 * (LINES - limit)),
        "before an early moment": lambda: full.read_log_before(LONG, LINES, limit, end_ms=10 * limit),
        "between two": lambda: full.read_log(
            LONG, 0, limit, start_ms=5 * LINES, end_ms=5 * LINES + 10 * limit
        ),
        "nothing there": lambda: full.read_log(LONG, 0, limit, start_ms=10 * LINES),
    }
    halving = 17 * 2 * 5  # two moments, 17 rows each, some steps a row; in tens of steps
    costs = {way: steps.of(call) for way, call in ways.items()}
    assert {way: cost for way, cost in costs.items() if cost > 1.2 * head + halving} == {}
    assert len(full.read_log(LONG, 0, limit, start_ms=10 * (LINES - limit))) == limit


@pytest.mark.parametrize("order_by", ["LogStreamName", "LastEventTime"])
@pytest.mark.parametrize("descending", [False, True])
def test_a_page_of_many_streams(full: SqliteStore, tmp_path: Path, order_by: str, descending: bool) -> None:
    """In both orders, both ways: the hundredth page costs what the first costs, and none sorts."""
    logs = LogsService(full, config(tmp_path))
    steps = Steps(full)

    def page(token: str | None) -> str:
        answer = logs.describe_log_streams(GROUP, order_by=order_by, descending=descending, token=token)
        return str(answer.get("nextToken"))

    first = steps.of(lambda: page(None))
    token = None
    for _ in range(99):
        token = page(token)
    last = steps.of(lambda: page(token))
    assert 0 < last <= 2 * first
    one = steps.of(lambda: logs.describe_log_streams(GROUP, prefix="short-04242/"))
    assert one <= first, "a job's streams are found by their prefix"


def test_a_filter_opens_streams_when_their_time_comes(full: SqliteStore) -> None:
    """The first lines of a group, or those since a moment, do not cost a look into every stream."""
    steps = Steps(full)
    begin = 10**9 + 1000 * (STREAMS - 10)

    def lines(start_ms: int | None, count: int) -> list[str]:
        return [name for name, _ in islice(Merged(full, None, start_ms, None, None), count)]

    assert lines(begin, 4) == ["short-04990/algo-1-1"] * 3 + ["short-04991/algo-1-1"]
    early = steps.of(lambda: lines(None, 10))
    late = steps.of(lambda: lines(begin + 5, 10))
    assert 0 < early < 5_000
    # The streams that were open at the moment are looked for among all, in an index of their times.
    assert late < early + 3 * STREAMS


def test_time_never_runs_back_within_a_stream(store: SqliteStore, tmp_path: Path) -> None:
    """A line whose clock stepped back takes the time of the line before it, across batches too."""
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    store.append_log("s", batch("one", "two", cursor="1", at_ms=50), 1)
    store.append_log("s", batch("three", cursor="2", at_ms=20), 1)
    assert [e.timestamp_ms for e in store.read_log("s", 0, 9)] == [50, 51, 51]
    stream = store.log_stream("s")
    assert stream is not None
    assert (stream.first_event_ms, stream.last_event_ms) == (50, 51)
