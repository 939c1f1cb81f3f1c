"""The process that serves a job's TensorBoard, with TensorBoard itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

PROCESS = (
    Path(__file__).resolve().parents[2]
    / "local_backend"
    / "windtunnel_local"
    / "ui"
    / "tensorboard"
    / "process.py"
)
PATIENCE_S = 300.0


def write_scalar(path: Path, step: int, value: float) -> None:
    """One more point of a curve, as a script's SummaryWriter does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        writer = RecordWriter(file)
        point = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
        writer.write(Event(wall_time=time.time(), step=step, summary=point).SerializeToString())
        writer.flush()


def asked(address: str) -> Any:
    """JSON at an address."""
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:  # noqa: S310  of http
        return json.load(answer)


def wait_for_steps(scalars: str, steps: list[int]) -> None:
    """Until the curve has these."""
    deadline, found = time.monotonic() + PATIENCE_S, []
    while found != steps:
        assert time.monotonic() < deadline, found
        with suppress(urllib.error.HTTPError):  # not read yet
            found = [step for _, step, _ in asked(scalars)]
        time.sleep(0.1)


def test_it_shows_a_file_that_grows_and_ends_with_who_started_it(tmp_path: Path) -> None:
    """Below its secret address only; the folder goes with it."""
    folder = tmp_path / "board"
    events = folder / "events" / "run" / "events.out.tfevents.1"
    write_scalar(events, 1, 0.5)
    orders = {
        "path": sys.path,
        "folder": str(folder),
        "logdir": str(folder / "events"),
        "prefix": "/secret",
        "title": "job",
        "idle_s": 600,
    }
    with subprocess.Popen(
        [sys.executable, "-I", str(PROCESS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(orders) + "\n")
        process.stdin.flush()
        server = f"http://127.0.0.1:{int(process.stdout.readline())}"
        scalars = f"{server}/secret/data/plugin/scalars/scalars?run=run&tag=loss"
        wait_for_steps(scalars, [1])
        write_scalar(events, 2, 0.25)
        wait_for_steps(scalars, [1, 2])
        for path in ("/", "/data/runs"):
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                asked(server + path)
            refused.value.close()
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    assert not folder.exists()
