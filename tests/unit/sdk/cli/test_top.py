"""`windtunnel top`: what the cores of a running job do, seen from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService
from windtunnel import TrainingJob
from windtunnel.cli import main as cli
from windtunnel.errors import JobNotFinished
from windtunnel.priceperf.workload import usage


def core(rank: int, *, at: float = 102.0, **changes: Any) -> dict[str, Any]:
    """What the backend passes on of one process."""
    counts = {
        "executions": 30, "execution_seconds": 3.0, "compilations": 2, "compile_seconds": 0.5, "steps": 15,
        "flops": 6e9 if rank == 0 else None, "user_seconds": 9.0, "system_seconds": 1.0, "host_bytes": 2**30,
    }  # fmt: skip
    before = {**counts, "time": at - 2.0, "executions": 10, "execution_seconds": 2.0, "steps": 5}
    before.update(user_seconds=6.5, system_seconds=0.5, flops=2e9 if rank == 0 else None)
    return {
        "schema": "windtunnel.usage/1",
        "time": at,
        "rank": rank,
        "cores": [rank],
        "pid": 30 + rank,
        "command": "python train.py",
        "counts": counts,
        "before": before,
        "latency": {"p50": 0.02},
        "device_memory": {"total": 2**31},
        **changes,
    }


def document(*cores: dict[str, Any], now: float = 102.5) -> dict[str, Any]:
    """``windtunnel/usage.json``."""
    hosts = [{"host": "algo-1", "cores": list(cores)}]
    return {
        "schema": "windtunnel.usage/1",
        "job": "j",
        "time": now,
        "instance_type": "ml.trn1.2xlarge",
        "hosts": hosts,
    }


def test_rates_come_from_the_last_two_publications() -> None:
    """Half of the time busy, five steps a second, one and a half processors."""
    first, second = usage.read(document(core(1), core(0)))
    assert (first.rank, second.rank) == (0, 1)
    assert (first.utilization, first.steps_per_second, first.processors) == (0.5, 5.0, 1.5)
    assert (first.executions_per_second, first.median_execution_s) == (10.0, 0.02)
    assert (first.flops_per_second, second.flops_per_second) == (2e9, None)
    assert (first.device_bytes, first.quiet_s) == (2**31, 0.5)


def test_what_is_not_known_stays_unknown() -> None:
    """The first publication has no rates; a script's own files in that place are left out."""
    (only,) = usage.read(document(core(0, before=None, device_memory=None, latency=None), {"cores": "x"}))
    assert (only.utilization, only.steps_per_second) == (0.0, 0.0)
    assert (only.device_bytes, only.median_execution_s) == (None, None)


def test_figures_that_are_none_are_left_out() -> None:
    """A script's own file of the right form with numbers that cannot be shown does not break the others' rows."""
    odd = [
        {**core(0), "rank": "first"}, {**core(0), "time": float("nan")}, core(0, pid=float("inf")),
        core(0, latency={"p50": "soon"}), core(0, cores=7), core(0, counts={**core(0)["counts"], "steps": []}),
    ]  # fmt: skip
    assert [found.rank for found in usage.read(document(*odd, core(1)))] == [1]


@pytest.mark.parametrize(
    "odd",
    [{}, {"hosts": None}, {"hosts": 7}, {"hosts": ["x", 1, {}]}, {"hosts": [{"host": "a", "cores": None}]},
     {"hosts": [{"cores": [core(0)]}], "time": 1.0}],
)  # fmt: skip
def test_what_is_no_such_document_has_no_cores(odd: dict[str, Any]) -> None:
    """A job's own code may have put anything in its place."""
    assert usage.read(odd) == []


def test_figures_that_no_core_can_have_are_left_out() -> None:
    """Integers may be larger than all floats; a count that went down is no rate."""
    counts = core(0)["counts"]
    odd = [core(0, counts={**counts, name: 10**400}) for name in ("steps", "host_bytes", "compilations")]
    odd += [core(0, device_memory={"total": 10**400}), core(10**30), core(0, at=-1e300)]
    less = core(1, counts={**counts, "steps": 1, "execution_seconds": 0.0})
    (only,) = usage.read(document(*odd, less))
    assert (only.rank, only.steps_per_second, only.utilization) == (1, 0.0, 0.0)


def test_who_the_others_wait_for() -> None:
    """Whoever is behind in steps; of equals, whoever executes clearly longer; else nobody is named."""

    def ranks(*documents: dict[str, Any]) -> list[int]:
        return [found.rank for found in usage.waited_for(usage.read(document(*documents)))]

    counts = core(1)["counts"]
    assert ranks(core(0), core(1, counts={**counts, "steps": 14})) == [1]
    assert ranks(core(0), core(1, counts={**counts, "execution_seconds": 3.5})) == [1]
    assert ranks(core(0), core(1)) == ranks(core(0)) == []


@pytest.fixture
def jobs(jobs: FakeService) -> FakeService:
    """The service behind the command line's session, with a job that runs."""
    assert cli.main(["run", "src/train.py", "--job-name", "j", "--no-wait"]) == 0
    return jobs


def publish(jobs: FakeService, found: dict[str, Any], name: str = "usage", content: bytes = b"") -> None:
    """Store what the backend would."""
    jobs.store("j", f"windtunnel/{name}.json", json.dumps(found).encode() if found else content)


def test_top_once_is_a_table(jobs: FakeService, invoke: Invoke) -> None:
    """Every process, the sums, and that nothing of it is Trainium's."""
    publish(jobs, document(core(0), core(1, at=92.0)))
    out = invoke("top", "j", "--once").out
    for part in (
        "ml.trn1.2xlarge, simulated",
        "algo-1",
        "50 %",
        "2.00 GFLOP/s",
        "2.00 GiB",
        "2 processes",
        "Trainium",
    ):
        assert part in out
    assert "no step for 10.5 s" in out
    publish(jobs, document(core(0)))
    assert "1 process: utilization" in invoke("top", "j", "--once").out


def test_top_json_is_an_object(jobs: FakeService, invoke: Invoke) -> None:
    """For programs."""
    publish(jobs, document(core(0)))
    shown = json.loads(invoke("top", "j", "--once", "--json").out)
    assert (shown["job"], shown["cores"][0]["pid"], shown["cores"][0]["utilization"]) == ("j", 30, 0.5)


def test_top_says_why_there_is_nothing(jobs: FakeService, invoke: Invoke) -> None:
    """Not yet, or not any more."""
    assert "no core is in use" in invoke("top", "j", "--once").err
    for _ in range(4):
        cli.main(["top", "j", "--once"])
    said = invoke("top", "j", "--once", exits=1).err
    assert "has ended: Completed. `windtunnel report j`" in said


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"9" * 5000])
@pytest.mark.parametrize("command", ["top", "report"])
def test_what_else_a_script_stored_there_is_said(
    jobs: FakeService, invoke: Invoke, command: str, content: bytes
) -> None:
    """A job on AWS, or one with keys, can write beside its output."""
    for name in ("usage", "counters"):
        publish(jobs, {}, name, content)
    assert ".json is no JSON object" in invoke(command, "j", exits=1).err


def test_event_files_are_fetched_into_a_folder(jobs: FakeService, tmp_path: Path) -> None:
    """From where the job put them; before its end there are none."""
    job = TrainingJob("j")
    with pytest.raises(JobNotFinished, match="no event files"):
        job.download_tensorboard(tmp_path / "none")
    jobs.requests["j"]["TensorBoardOutputConfig"] = {"S3OutputPath": "s3://boards/here"}
    jobs.objects["boards", "here/j/tensorboard-output/neuron/algo-1/events.1"] = b"x"
    folder = job.download_tensorboard(tmp_path / "boards")
    assert (folder / "neuron" / "algo-1" / "events.1").read_bytes() == b"x"
