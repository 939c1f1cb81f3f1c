"""Records that a script writes beside the simulator's own: they cost its report, and neither its job nor the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.objects import FakeObjects
from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World
from tests.unit.service.samples import config, job, request
from tests.unit.service.test_metering import graph, start, step, worked, write
from windtunnel_local.service.ground.job_paths import COUNTERS
from windtunnel_local.service.observed import counter_records, live_usage
from windtunnel_local.service.observed.live_usage import LiveUsage
from windtunnel_local.service.observed.metering import read_counters

HOST = "algo-1"
MANY = "x" * 1000
BIG = {**graph("fwd", 1.0), "flops": {"fp32": 10**12}}
ODD: dict[str, list[dict[str, Any]]] = {
    "runs that would make a text of a petabyte": [BIG, step(1.0, graphs={"fwd": MANY})],
    "runs that are a list": [BIG, step(1.0, graphs={"fwd": [1] * 1000})],
    "work so often that no memory holds it": [
        {**worked("fwd", 3), "work": {"products": [[1, 2, 3, 4, "fp32", 10**12]]}},
        step(1.0, graphs={"fwd": MANY}),
    ],
    "repeated so often": [BIG, step(1.0, repeated={"fwd": MANY})],
    "larger than any float": [graph("fwd", 1.5), step(1.0, graphs={"fwd": 10**400})],
    "no object": [graph("fwd", 1.5), step(1.0, graphs=7, accessed=7, repeated=7, sdpa=7, collectives=7)],
    "no objects within": [graph("fwd", 1.5), step(1.0, collectives={"all_reduce": 7}), step(1.0, samples=0)],
    "a time that is none": [graph("fwd", 1.5), step(1.0, time="now"), step(1.0, time=[1])],
    "runs for which joined steps have none": [
        graph("fwd", 1.5),
        step(1.0, optimizer=False, graphs={"fwd": "1"}),
        step(1.0, samples=0, graphs={"fwd": 1}),
    ],
}


@pytest.mark.parametrize("odd", ODD)
def test_a_script_may_write_what_it_likes(world: World, odd: str) -> None:
    """The job is completed, and there is a report: what is no figure counts as nothing."""

    def script(container: FakeContainer) -> int:
        lines = "".join(json.dumps(record) + "\n" for record in [start(0), *ODD[odd]])
        container.write(f"{COUNTERS}/rank-0.jsonl", lines)
        return 0

    world.runner.script = script
    assert world.run(request()).lifecycle.failure_reason is None
    counted = json.loads(world.objects.read("out", "models/job/windtunnel/counters.json"))
    assert counted["train"]["steps"]


def test_memory_is_bounded_whatever_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all files of a host together, lowest rank first; a line counts for what it takes, however short."""
    monkeypatch.setattr(counter_records, "MOST_BYTES", 100 * counter_records.LEAST_OF_A_LINE)
    write(tmp_path, 0, start(0), *[{"kind": "step"}] * 59)
    write(tmp_path, 1, *[{"kind": "step"}] * 1000)
    write(tmp_path, 2, *[{"kind": "step"}] * 1000)
    told: list[str] = []
    assert [(one.rank, len(one.steps)) for one in read_counters(tmp_path, tell=told.append)] == [
        (0, 59),
        (1, 40),
    ]
    assert "of which the rest is not read" in told[0]
    monkeypatch.undo()
    assert len(read_counters(tmp_path, tell=told.append)) == 3
    assert len(told) == 1


def test_a_document_nested_as_deep_as_can_be_read_is_no_reason_to_fail(tmp_path: Path) -> None:
    """What is read at the deepest cannot be written one level further down."""
    folders, objects = config(tmp_path).paths("job"), FakeObjects(tmp_path / "objects", "out")
    core = folders.counters(HOST) / "cores" / "core-0.json"
    core.parent.mkdir(parents=True)
    for depth in range(900, 1000):
        core.write_text('{"schema": "windtunnel.usage/1", "x": ' + depth * "[" + depth * "]" + "}")
        LiveUsage(objects, FakeClock(), config(tmp_path)).publish(job(tmp_path))


def test_a_script_that_claims_thousands_of_cores_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads them sees to the job's limits, too."""
    monkeypatch.setattr(live_usage, "MOST_CORES", 3)
    folders, objects = config(tmp_path).paths("job"), FakeObjects(tmp_path / "objects", "out")
    cores = folders.counters(HOST) / "cores"
    cores.mkdir(parents=True)
    for number in range(9):
        (cores / f"core-{number}.json").write_text(json.dumps({"schema": "windtunnel.usage/1"}))
    LiveUsage(objects, FakeClock(), config(tmp_path)).publish(job(tmp_path))
    stored = json.loads(objects.read("out", "models/job/windtunnel/usage.json"))
    assert len(stored["hosts"][0]["cores"]) == 3
