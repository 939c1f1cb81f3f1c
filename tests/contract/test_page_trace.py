"""A job's steps over time, from what its containers counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.conftest import Backend, serving
from tests.contract.page import Visitor, visitor
from tests.fakes.runner import FakeContainer

PAGE = "/ui/jobs/traced/trace"
BEGIN = 1_700_000_000.0
STEPS = 400


def count(container: FakeContainer) -> int:
    """Four hundred steps of 10 ms with a gap in the middle, as the simulator counts them, and lines of nobody's."""
    lines = [{"kind": "start", "script": "<script>alert(1)</script>", "rank": 0, "world_size": 2}]
    for number in range(STEPS):
        lines.append(
            {
                "kind": "step", "time": BEGIN + 0.01 * (number + 1) + (number >= 200), "seconds": 0.01,
                "optimizer": number % 4 != 3, "samples": 8, "graphs": {}, "collectives": {},
                "collective_seconds": 0.002, "input_wait_seconds": 0.001, "compile_seconds": 0.0,
                "trace_seconds": 0.003,
            }
        )  # fmt: skip
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    container.write("/opt/windtunnel/counters/rank-0.jsonl", f'{text}\0{{"kind": "step", "seconds": -1}}\n')
    container.write("/opt/ml/model/model.txt", "weights")
    return 0


@contextmanager
def tracing(home: Path) -> Iterator[Backend]:
    """A server with a job that has counted."""
    with serving(home, count) as running:
        running.client("s3").create_bucket(Bucket="out")
        running.run("traced")
        yield running


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Who may see it."""
    with tracing(tmp_path_factory.mktemp("traced") / "home") as running:
        yield visitor(running)


def test_all_steps_are_a_page_and_a_query_looks_closer(one: Visitor) -> None:
    """With sums in words; the script's name stays text."""
    whole = one.ask(PAGE)
    assert whole.status == 200
    assert "Steps 1 to 400 of 400" in whole.body
    assert "1.200 s" in whole.body  # tracing: 400 x 3 ms
    assert "&lt;script&gt;alert(1)" in whole.body
    assert "<script>alert" not in whole.body
    assert " style=" not in whole.body
    assert len(whole.body.encode()) < 200_000
    closer = one.ask(f"{PAGE}?from=198&to=203").body
    assert "Steps 198 to 203 of 400" in closer
    assert "1.970 s" in closer
    for way in ("Closer", "Earlier", "Later", "Wider", "All steps"):
        assert f">{way}</a>" in closer


@pytest.mark.parametrize(
    "query", ["from=x", "from=9&to=3", "to=" + "9" * 5000, "from=500", "from=-1&to=%D9%A3", "from=%00"]
)
def test_a_wrong_query_has_a_message_and_shows_all(one: Visitor, query: str) -> None:
    """Never an error of the server's."""
    answer = one.ask(f"{PAGE}?{query}")
    assert answer.status == 200
    if not query.startswith("to"):
        assert "There are 1 to 400" in answer.body
    assert "Steps 1 to 400 of 400" in answer.body


def test_the_file_for_perfetto(one: Visitor) -> None:
    """Each step once, with the job's phases, to be kept."""
    answer = one.ask(f"{PAGE}.json")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''traced.trace.json"
    assert answer.headers["content-type"] == "application/json"
    events = json.loads(answer.body)["traceEvents"]
    steps = [event for event in events if event.get("cat") == "step"]
    assert len(steps) == STEPS
    assert {round(event["dur"]) for event in steps} == {10_000}
    assert steps[200]["ts"] - steps[199]["ts"] == pytest.approx(1_010_000, abs=1)
    assert "Training" in [event["name"] for event in events if event.get("cat") == "phase"]


def test_a_job_without_steps_says_so(tmp_path: Path) -> None:
    """Of one that has ended, of one that left something else, and of one that there is not."""
    with tracing(tmp_path / "home") as running:
        one, s3 = visitor(running), running.client("s3")
        for body in (b"", b"[]", b'{"schema": "windtunnel.steps/1"}', b"\0"):
            s3.put_object(Bucket="out", Key="models/traced/windtunnel/steps.json", Body=body)
            answer = one.ask(PAGE)
            assert answer.status == 200
            assert "No step ran on the device" in answer.body
            assert one.ask(f"{PAGE}.json").status == 404
        assert one.ask("/ui/jobs/none/trace").status == 404
