"""A running job seen from outside, and the scalars it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.conftest import PATIENCE_S, estimator
from tests.waiting import wait_for
from windtunnel import LocalSession, __version__
from windtunnel.priceperf.workload import usage

pytestmark = pytest.mark.docker

READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = {}
for folder in sys.argv[1:]:
    events = EventAccumulator(folder)
    events.Reload()
    found.update({tag: len(events.Scalars(tag)) for tag in events.Tags()["scalars"]})
print(json.dumps(found))
"""


def top(session: LocalSession, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`windtunnel top` in a process of its own."""
    command = [sys.executable, "-m", "windtunnel.cli.main", "top", name, *arguments]
    root = Path(__file__).resolve().parents[2]
    environment = {
        "WINDTUNNEL_HOME": str(session.home),
        "PYTHONPATH": f"{root / 'sdk'}:{root / 'local_backend'}",
    }
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_top_shows_a_running_job_and_tensorboard_what_it_did(session: LocalSession, tmp_path: Path) -> None:
    """Both cores with their steps while it runs; afterwards the script's scalars and the Neuron counters."""
    signal = tmp_path / "signal"
    signal.mkdir()
    (signal / "file").write_text("a channel needs one")
    torchrun = {"torch_distributed": {"enabled": True}}
    job = estimator(session, "watched.py", distribution=torchrun).fit({"signal": str(signal)}, wait=False)

    def busy() -> list[usage.CoreUsage] | None:
        found = usage.read(job.usage() or {})
        return found if sum(one.steps_per_second > 0 < one.utilization for one in found) == 2 else None

    usages = wait_for(busy, "two busy cores", patience_s=PATIENCE_S, pause_s=0.5)
    assert [(one.host, one.cores, one.rank) for one in usages] == [("algo-1", (0,), 0), ("algo-1", (1,), 1)]
    assert all(one.utilization <= 1 and "watched.py" in one.command for one in usages)
    shown = top(session, job.name, "--once")
    assert shown.returncode == 0, shown.stderr
    assert "ml.trn1.2xlarge, simulated" in shown.stdout and "2 processes" in shown.stdout
    looked = json.loads(top(session, job.name, "--once", "--json").stdout)
    assert [core["rank"] for core in looked["cores"]] == [0, 1]

    (signal / "seen").touch()
    job.wait(logs=False, timeout=PATIENCE_S)
    assert job.usage() is None
    ended = top(session, job.name)
    assert ended.returncode == 1 and "has ended: Completed" in ended.stderr
    boards = job.download_tensorboard(tmp_path / "boards")
    mounted = [f"/boards/{path.relative_to(boards).parent}" for path in sorted(boards.rglob("events.*"))]
    assert len(mounted) == 2
    image = os.environ.get("WINDTUNNEL_IMAGE", f"windtunnel-training:{__version__}")
    run = ["docker", "run", "--rm", "--network", "none", "--volume", f"{boards}:/boards:ro", image]
    read = subprocess.run(
        [*run, "python", "-c", READ_EVENTS, *mounted],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    found = json.loads(read.stdout)
    assert found["loss"] == found["neuron/step_seconds"] > 0
