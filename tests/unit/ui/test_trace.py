"""A job's steps over time: no step is invented, none overlaps another, and the file is one that viewers read."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.service.observed import step_times
from windtunnel_local.service.observed.metering import ProgramName, RankCounters
from windtunnel_local.service.observed.step_times import HostSteps, steps_document
from windtunnel_local.ui.charts.step_lanes import WIDTH, Block, lane_svg
from windtunnel_local.ui.job.phases import Phase
from windtunnel_local.ui.pages.trace import window
from windtunnel_local.ui.trace import steps
from windtunnel_local.ui.trace.chrome import chrome_trace
from windtunnel_local.ui.trace.steps import PARTS, Steps, read

BEGIN = 1_700_000_000.0
FIGURE = st.one_of(
    st.floats(0, 50), st.floats(), st.integers(), st.sampled_from(["x", None, True, 10**400, -(10**400)])
)  # fmt: skip
SUMS = ("samples", "collective_seconds", "input_wait_seconds", "compile_seconds", "trace_seconds")
RECORD = st.fixed_dictionaries(
    {"time": st.floats(BEGIN, BEGIN + 1e5), "seconds": st.floats(1e-6, 100), "optimizer": st.booleans()},
    optional=dict.fromkeys(SUMS, FIGURE),
)
RECORDS = st.lists(
    st.one_of(RECORD, st.dictionaries(st.sampled_from(["time", "seconds"]), FIGURE)), max_size=12
)


def document(*of_hosts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """As a job leaves it whose hosts counted these steps."""
    hosts = [
        HostSteps(
            f"algo-{n + 1}", [RankCounters(rank=2 * n, program=ProgramName("train.py", 4), steps=steps)]
        )
        for n, steps in enumerate(of_hosts)
    ]
    return steps_document("job", hosts)


def stored(found: dict[str, Any] | None) -> Steps | None:
    """Written and read."""
    return read(None if found is None else json.loads(json.dumps(found)))


def step(end: float, seconds: float = 1.0, **members: Any) -> dict[str, Any]:
    """A record as the simulator writes it."""
    return {
        "kind": "step",
        "time": BEGIN + end,
        "seconds": seconds,
        "optimizer": True,
        "samples": 8,
        **members,
    }


def test_each_step_is_where_its_record_says() -> None:
    """From its end back by its length; its parts and the rest are the whole."""
    found = stored(document([step(2, collective_seconds=0.25, trace_seconds=0.5), step(3.5)], [step(2.5)]))
    assert found is not None
    assert found.begin == BEGIN + 1
    first, second = found.lanes[0].steps
    assert (first.begin_s, first.end_s, first.seconds, first.training, first.samples) == (0, 1, 1, True, 8)
    assert dict(zip(PARTS, first.parts, strict=True)) == {
        "compilation": 0, "input wait": 0, "collectives": 0.25, "host": 0.5, "the rest": 0.25,
    }  # fmt: skip
    assert (second.begin_s, second.end_s) == (1.5, 2.5)
    assert [lane.name for lane in found.lanes] == ["algo-1, rank 0, train.py", "algo-2, rank 2, train.py"]
    assert found.lanes[1].steps[0].begin_s == 0.5


def test_of_very_many_steps_the_first_are_kept_and_the_rest_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many of each core."""
    for module in (steps, step_times):
        monkeypatch.setattr(module, "MOST_STEPS", 100)
    many = [step(number, 0.5) for number in range(60)]
    found = stored(document(many, many))
    assert found is not None
    assert [(len(lane.steps), lane.left_out) for lane in found.lanes] == [(50, 10)] * 2


def test_a_job_without_steps_leaves_nothing() -> None:
    """And what is no step is none."""
    assert document([], []) is None
    assert document([{"kind": "step", "seconds": 1.0}, {"time": BEGIN, "seconds": float("nan")}]) is None


@given(hosts=st.lists(RECORDS, max_size=3))
def test_steps_never_overlap_and_their_parts_add_up(hosts: list[list[dict[str, Any]]]) -> None:
    """Whatever a script wrote between the simulator's records."""
    found = stored(document(*hosts))
    for lane in () if found is None else found.lanes:
        assert [one.number for one in lane.steps] == list(range(1, len(lane.steps) + 1))
        for one in lane.steps:
            assert 0 <= one.begin_s <= one.end_s
            assert min(one.parts) >= 0
            assert sum(one.parts) == pytest.approx(one.seconds)
        assert all(before.end_s <= after.begin_s for before, after in pairwise(lane.steps))


@given(hosts=st.lists(RECORDS, min_size=1, max_size=3), phases=st.integers(0, 3))
def test_the_file_is_a_trace(hosts: list[list[dict[str, Any]]], phases: int) -> None:
    """Complete events do not overlap on a thread, every thread and process has a name, counters have series."""
    found = stored(document(*hosts))
    if found is None:
        return
    start = datetime.fromtimestamp(BEGIN, timezone.utc)
    told = [Phase(f"P{n}", start + timedelta(seconds=n), None, 1.0, False, "") for n in range(phases)]
    trace = json.loads("".join(chrome_trace('a"job', found, told)), parse_constant=pytest.fail)
    assert trace["displayTimeUnit"] == "ms"
    events = trace["traceEvents"]
    named = {(one["name"], one["pid"], one["tid"]) for one in events if one["ph"] == "M"}
    ends: dict[tuple[int, int], float] = {}
    for one in events:
        assert isinstance(one["pid"], int)
        assert isinstance(one["tid"], int)
        if one["ph"] == "M":
            assert one["args"]["name"]
            continue
        assert one["ts"] >= 0
        assert any(kind == "process_name" and pid == one["pid"] for kind, pid, _ in named)
        if one["ph"] == "C":
            assert list(one["args"]) == list(PARTS)
            continue
        assert one["ph"] == "X"
        assert one["dur"] >= 0
        if one["cat"] == "step":
            assert ("thread_name", one["pid"], one["tid"]) in named
            thread = one["pid"], one["tid"]
            assert one["ts"] >= ends.get(thread, 0.0) - 2e-3  # a nanosecond is the last digit written
            ends[thread] = one["ts"] + one["dur"]
    assert sum(one.get("cat") == "step" for one in events) == sum(len(lane.steps) for lane in found.lanes)


ANY_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5), st.just(10**400)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
GOOD = document([step(1), step(2)], [step(1)])


@given(place=st.sampled_from(["cores", "begin", "columns", "schema"]), value=ANY_JSON, deeper=st.booleans())
def test_any_document_is_read_or_left(place: str, value: Any, deeper: bool) -> None:
    """The job's own code can write there."""
    assert GOOD is not None
    changed = json.loads(json.dumps(GOOD))
    if deeper and place == "cores":
        changed["cores"][0] = value if isinstance(value, dict) else {**changed["cores"][0], "steps": value}
    else:
        changed[place] = value
    found = read(changed)
    assert found is None or all(lane.steps for lane in found.lanes)


@given(
    given_=st.dictionaries(
        st.sampled_from(["from", "to"]), st.one_of(st.integers(-5, 60).map(str), st.text())
    ),
    of=st.integers(1, 50),
)
def test_any_query_is_a_window(given_: dict[str, str], of: int) -> None:
    """Within the steps that there are, as are all ways from it."""
    found = window(given_, of)
    assert 1 <= found.first <= found.last <= of
    for _, first, last in found.ways:
        assert 1 <= first <= last <= of


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(1e-4, 5)), min_size=1, max_size=200), st.integers(1, 8))
def test_a_lane_stays_small_and_inside(gaps: list[tuple[float, float]], lanes: int) -> None:
    """However many steps there are; nothing is drawn beyond its edges."""
    blocks, moment = [], 0.0
    for gap, seconds in gaps:
        blocks.append(
            Block(moment + gap, moment + gap + seconds, (seconds / 2, 0.0, seconds / 2), marked=True)
        )
        moment += gap + seconds
    drawn = lane_svg(blocks, blocks[0].begin_s, moment, lanes)
    assert "style" not in drawn
    for x, width in re.findall(r"M([0-9.]+) [0-9.]+h([0-9.]+)v", drawn):
        assert float(x) >= 0
        assert float(x) + float(width) <= WIDTH + 1


def test_thousands_of_steps_are_a_page() -> None:
    """Neighbours are drawn as one where they are too narrow to be seen."""
    blocks = [Block(n, n + 1, (0.1, 0.2, 0.3, 0.2, 0.2), marked=True) for n in range(50_000)]
    assert 8 * len(lane_svg(blocks, 0, 50_000, 8)) < 130_000


def test_no_more_steps_are_read_than_a_job_keeps() -> None:
    """A script may have written ten times as many: a page would take as many seconds."""
    row = [1.0, 1.0, 1, 8, 0, 0, 0, 0]
    made_up = document([step(1.0)], [step(1.0)])
    assert made_up is not None
    for core in made_up["cores"]:
        core["steps"] = [row] * 60_000
    found = read(made_up)
    assert found is not None
    assert [len(lane.steps) for lane in found.lanes] == [50_000, 50_000]
