"""What of a job's files is not stored, its own log says: nobody looks for a part of a model in backend.log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.runner import FakeContainer
from tests.unit.service.conftest import World
from tests.unit.service.samples import request
from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.service.observed import backend_lines
from windtunnel_local.service.observed.metric_collector import MetricCollector

SAYS = "is not stored: it"


def test_the_log_names_what_is_left_out(world: World) -> None:
    """By the script's own path, with the reason, and once; what is stored is not named."""

    def script(container: FakeContainer) -> int:
        container.print("hello")
        container.write("/opt/ml/model/weights", "w")
        model = container.path("/opt/ml/model")
        os.mkfifo(model / "pipe")
        (model / "stolen").symlink_to("/etc/passwd")
        (model / "latest").symlink_to("weights")
        Path(os.fsdecode(os.fsencode(model) + b"/\xff")).write_text("x")
        os.mkfifo(container.path("/opt/ml/checkpoints") / "pipe")
        return 0

    world.runner.script = script
    assert world.run(request(CheckpointConfig={"S3Uri": "s3://out/ckpt"})).lifecycle.status == "Completed"
    assert world.lines() == [
        "hello",
        "Windtunnel: /opt/ml/model/pipe is not stored: it is no regular file (a pipe).",
        "Windtunnel: /opt/ml/model/stolen is not stored: it is a link that leads out of /opt/ml/model.",
        r"Windtunnel: /opt/ml/model/\udcff is not stored: its name is not UTF-8.",
        "Windtunnel: /opt/ml/checkpoints/pipe is not stored: it is no regular file (a pipe).",
    ]


def test_a_folder_of_sockets_does_not_fill_the_log(world: World) -> None:
    """The first are named, the rest counted."""

    def script(container: FakeContainer) -> int:
        for number in range(backend_lines.MOST_LINES + 5):
            os.mkfifo(container.path("/opt/ml/model") / f"{number:03}")
        return 0

    world.runner.script = script
    world.run(request())
    lines = world.lines()
    assert len(lines) == backend_lines.MOST_LINES + 1
    assert lines[-1] == "Windtunnel: 5 more files are not stored."


def test_an_upload_that_is_done_again_says_it_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step is taken whole, as it is by the next server."""
    finish = MetricCollector.finish

    def full(_: MetricCollector) -> Any:
        monkeypatch.setattr(MetricCollector, "finish", finish)
        raise StoreUnavailable("the disk is full")

    def script(container: FakeContainer) -> int:
        os.mkfifo(container.path("/opt/ml/model") / "pipe")
        return 0

    monkeypatch.setattr(MetricCollector, "finish", full)
    world.runner.script = script
    assert world.run(request()).lifecycle.status == "Completed"
    assert MetricCollector.finish is finish
    assert [SAYS in line for line in world.lines()] == [True]
