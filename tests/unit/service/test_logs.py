"""The logs service: CloudWatch's paging over stored lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.service.samples import config, job, request
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.errors import InvalidParameter, LogsNotFound
from windtunnel_local.service.observed.filter_pattern import compile_pattern
from windtunnel_local.service.observed.logs import GROUP, LogsService
from windtunnel_local.store import SqliteStore

ONE, TWO = "job/algo-1-100", "job/algo-2-100"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "state.sqlite")
    opened.insert_job(job(tmp_path, request("job", hosts=2)))
    for host, name in (("algo-1", ONE), ("algo-2", TWO)):
        opened.open_log_stream("job", host, name, 5)
    yield opened
    opened.close()


@pytest.fixture
def logs(store: SqliteStore, tmp_path: Path) -> LogsService:
    return LogsService(store, config(tmp_path))


def write(store: SqliteStore, stream: str, *lines: tuple[int, str]) -> None:
    store.append_log(stream, LogBatch(tuple(LogLine(*line) for line in lines), "c"), 9)


def texts(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [event["message"] for event in answer["events"]]


def test_following_with_the_forward_token(store: SqliteStore, logs: LogsService) -> None:
    """Every line once; at the end the token that was passed in comes back."""
    first = logs.get_log_events(GROUP, ONE, from_head=True)
    assert texts(first) == []
    write(store, ONE, *[(i, f"line {i}") for i in range(5)])
    token, seen = first["nextForwardToken"], []
    for _ in range(4):
        answer = logs.get_log_events(GROUP, ONE, token=token, from_head=True, limit=2)
        seen += texts(answer)
        token, last = answer["nextForwardToken"], token
    assert seen == [f"line {i}" for i in range(5)]
    assert token == last
    assert len(token) == len("f/") + 56
    write(store, ONE, (9, "late"))
    assert texts(logs.get_log_events(GROUP, ONE, token=token)) == ["late"]


def test_the_latest_lines_and_back(store: SqliteStore, logs: LogsService) -> None:
    """Without startFromHead an answer holds the newest lines; the backward token leads to the first."""
    write(store, ONE, *[(i, str(i)) for i in range(5)])
    newest = logs.get_log_events(GROUP, ONE, limit=2)
    assert texts(newest) == ["3", "4"]
    middle = logs.get_log_events(GROUP, ONE, limit=2, token=newest["nextBackwardToken"])
    assert texts(middle) == ["1", "2"]
    oldest = logs.get_log_events(GROUP, ONE, limit=2, token=middle["nextBackwardToken"])
    assert texts(oldest) == ["0"]
    end = logs.get_log_events(GROUP, ONE, limit=2, token=oldest["nextBackwardToken"])
    assert texts(end) == []
    assert end["nextBackwardToken"] == oldest["nextBackwardToken"]
    assert texts(logs.get_log_events(GROUP, ONE, token=middle["nextForwardToken"])) == ["3", "4"]


def test_the_time_window(store: SqliteStore, logs: LogsService) -> None:
    """GetLogEvents excludes the end, FilterLogEvents includes it: as documented for each."""
    write(store, ONE, *[(i, str(i)) for i in range(5)])
    window = {"start_ms": 1, "end_ms": 3}
    assert texts(logs.get_log_events(GROUP, ONE, from_head=True, **window)) == ["1", "2"]  # type: ignore[arg-type]
    assert texts(logs.get_log_events(GROUP, ONE, **window)) == ["1", "2"]  # type: ignore[arg-type]
    assert texts(logs.filter_log_events(GROUP, **window)) == ["1", "2", "3"]  # type: ignore[arg-type]


def test_an_answer_has_a_megabyte_at_most(store: SqliteStore, logs: LogsService) -> None:
    """From either end, without losing a line."""
    write(store, ONE, *[(i, f"{i}" + "x" * 400_000) for i in range(5)])
    head = logs.get_log_events(GROUP, ONE, from_head=True)
    assert [text[0] for text in texts(head)] == ["0", "1"]
    tail = logs.get_log_events(GROUP, ONE)
    assert [text[0] for text in texts(tail)] == ["3", "4"]
    filtered = logs.filter_log_events(GROUP)
    assert [text[0] for text in texts(filtered)] == ["0", "1"]
    assert texts(logs.filter_log_events(GROUP, token=filtered["nextToken"]))[0][0] == "2"


def test_streams_of_a_job(store: SqliteStore, logs: LogsService) -> None:
    """By prefix, page by page, in both orders."""
    write(store, ONE, (100, "x"), (200, "y"))
    page = logs.describe_log_streams(GROUP, prefix="job/", limit=1)
    assert page["logStreams"] == [
        {
            "logStreamName": ONE,
            "creationTime": 5,
            "firstEventTimestamp": 100,
            "lastEventTimestamp": 200,
            "lastIngestionTime": 9,
            "arn": f"arn:aws:logs:us-east-1:000000000000:log-group:{GROUP}:log-stream:{ONE}",
            "storedBytes": 0,
        }
    ]
    rest = logs.describe_log_streams(GROUP, prefix="job/", limit=1, token=page["nextToken"])
    assert [s["logStreamName"] for s in rest["logStreams"]] == [TWO]
    assert "nextToken" not in rest
    newest = logs.describe_log_streams(GROUP, order_by="LastEventTime", descending=True, limit=1)
    assert newest["logStreams"][0]["logStreamName"] == ONE
    following = logs.describe_log_streams(
        GROUP, order_by="LastEventTime", descending=True, token=newest["nextToken"]
    )
    assert [s["logStreamName"] for s in following["logStreams"]] == [TWO]
    assert logs.describe_log_streams(GROUP, prefix="other/")["logStreams"] == []


def test_filtering_interleaves_streams(store: SqliteStore, logs: LogsService) -> None:
    """By time over all hosts; pages neither lose nor repeat a line, also of a clock that stepped back."""
    write(store, ONE, (1, "a ERROR"), (5, "b"), (3, "c ERROR"))
    write(store, TWO, (2, "d ERROR"), (4, "e ERROR"))
    assert texts(logs.filter_log_events(GROUP)) == ["a ERROR", "d ERROR", "e ERROR", "b", "c ERROR"]
    seen: list[str] = []
    token = None
    while True:
        answer = logs.filter_log_events(GROUP, prefix="job/", pattern="ERROR", limit=1, token=token)
        seen += texts(answer)
        token = answer.get("nextToken")
        if token is None:
            break
    assert seen == ["a ERROR", "d ERROR", "e ERROR", "c ERROR"]
    only = logs.filter_log_events(GROUP, streams=[TWO])
    assert [event["logStreamName"] for event in only["events"]] == [TWO, TWO]
    assert len({event["eventId"] for event in only["events"]}) == 2


def test_a_page_that_finds_nothing_leads_on(
    store: SqliteStore, logs: LogsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call looks at so many lines and no more, however few of them match."""
    monkeypatch.setattr("windtunnel_local.service.observed.logs.MAX_SCANNED", 10)
    write(store, ONE, *[(i, f"line {i}") for i in range(25)])
    sizes, token = [], None
    while True:
        answer = logs.filter_log_events(GROUP, pattern='"line 24"', token=token)
        sizes.append(len(answer["events"]))
        token = answer.get("nextToken")
        if token is None:
            break
    assert sizes == [0, 0, 1]


@settings(max_examples=60)
@given(
    times=st.lists(st.lists(st.integers(0, 20), max_size=5), min_size=1, max_size=5),
    limit=st.integers(1, 4),
    window=st.tuples(st.none() | st.integers(0, 20), st.none() | st.integers(0, 20)),
    way=st.sampled_from(["all", "prefix", "names"]),
)
def test_pages_of_a_filter_are_the_streams_merged(
    tmp_path: Path, times: list[list[int]], limit: int, window: tuple[int | None, int | None], way: str
) -> None:
    """Any streams, however they overlap, in pages of any size: every line between the moments, once, by time."""
    opened = SqliteStore(tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite")
    opened.insert_job(job(tmp_path, request("job")))
    wanted = []
    names = [f"job/s{number}" for number in range(len(times))]
    for name, stamps in zip(names, times, strict=True):
        opened.open_log_stream("job", "algo-1", name, 0)
        latest = 0
        for sequence, stamp in enumerate(stamps):
            write(opened, name, (stamp, f"{name} {sequence}"))
            latest = max(latest, stamp)
            wanted.append((latest, name, sequence))
    start, end = window
    low, high = 0 if start is None else start, 20 if end is None else end
    logs = LogsService(opened, config(tmp_path))
    seen: list[str] = []
    token = None
    while True:
        answer = logs.filter_log_events(
            GROUP,
            streams=names if way == "names" else None,
            prefix="job/s" if way == "prefix" else None,
            start_ms=start,
            end_ms=end,
            limit=limit,
            token=token,
        )
        seen += texts(answer)
        token = answer.get("nextToken")
        if token is None:
            break
    opened.close()
    assert seen == [f"{name} {sequence}" for at, name, sequence in sorted(wanted) if low <= at <= high]


def test_the_one_group(logs: LogsService) -> None:
    """It is there before the first job prints, by prefix, part or name."""
    (group,) = logs.describe_log_groups()["logGroups"]
    assert group["logGroupName"] == GROUP
    assert group["arn"] == f"{group['logGroupArn']}:*"
    assert group["creationTime"] > 1_600_000_000_000
    assert logs.describe_log_groups(prefix="/aws/sage")["logGroups"] == [group]
    assert logs.describe_log_groups(pattern="TRAINING")["logGroups"] == [group]
    assert logs.describe_log_groups(names=[GROUP])["logGroups"] == [group]
    assert logs.describe_log_groups(prefix="sage")["logGroups"] == []
    assert logs.describe_log_groups(pattern="lambda")["logGroups"] == []
    assert logs.describe_log_groups(names=[])["logGroups"] == []
    with pytest.raises(InvalidParameter, match="mutually exclusive"):
        logs.describe_log_groups(prefix="a", pattern="b")


def test_what_is_not_there(logs: LogsService) -> None:
    """The code by which SDKs know that a job has not printed yet."""
    with pytest.raises(LogsNotFound, match="log group does not exist"):
        logs.get_log_events("/aws/other", ONE)
    with pytest.raises(LogsNotFound, match="log stream does not exist"):
        logs.get_log_events(GROUP, "job/algo-1-10")
    with pytest.raises(LogsNotFound, match="log stream does not exist"):
        logs.filter_log_events(GROUP, streams=["job/none"])


def test_bad_parameters(logs: LogsService) -> None:
    """Foreign tokens, and parameters that exclude each other."""
    calls: list[Callable[[], object]] = [
        lambda: logs.get_log_events(GROUP, ONE, token="x"),
        lambda: logs.get_log_events(GROUP, ONE, token="f/" + "9" * 56),
        lambda: logs.describe_log_streams(GROUP, token="x"),
        lambda: logs.describe_log_streams(GROUP, token="W10="),
        lambda: logs.filter_log_events(GROUP, token="W10="),
        lambda: logs.filter_log_events(GROUP, token="W1sxLCJhIl0seyJhIjotMX1d"),
        lambda: logs.describe_log_streams(GROUP, prefix="a", order_by="LastEventTime"),
        lambda: logs.filter_log_events(GROUP, streams=[ONE], prefix="job"),
    ]
    for call in calls:
        with pytest.raises(InvalidParameter):
            call()


@pytest.mark.parametrize(
    ("pattern", "message", "expected"),
    [
        (None, "anything", True),
        ("ERROR", "an ERROR here", True),
        ("ERROR", "an error here", False),
        ("ERROR disk", "disk: ERROR", True),
        ("ERROR disk", "ERROR", False),
        ('"step 3"', "step 3 done", True),
        ('"step 3"', "step  3 done", False),
        (r'"say \"hi\""', 'they say "hi"', True),
        ("?a1 ?b2", "b2", True),
        ("?a1 ?b2", "c3", False),
        ("ERROR -retry", "ERROR retry", False),
        ("-retry", "fine", True),
    ],
)
def test_filter_patterns(pattern: str | None, message: str, expected: bool) -> None:
    """The plain-term part of CloudWatch's syntax."""
    assert compile_pattern(pattern)(message) is expected


@pytest.mark.parametrize("pattern", ["{ $.a = 1 }", "[a, b]", "%x.*%", "loss:", "a ?b", '"open'])
def test_other_patterns_are_refused(pattern: str) -> None:
    """Never a filter that matches something else than what was meant."""
    with pytest.raises(InvalidParameter, match="Valid: terms"):
        compile_pattern(pattern)
