"""A backend with a fake engine, that a test can crash and start again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import waiting
from tests.fakes.clock import FakeClock
from tests.fakes.crash import Crash, Fuse, Mortal, quiet_crashes
from tests.fakes.objects import FakeObjects
from tests.fakes.runner import FakeContainer, FakeRunner, Image
from tests.unit.service.samples import config
from windtunnel_local.service.ground.config import Pace
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.training_jobs import TrainingJobService
from windtunnel_local.store import SqliteStore

FAST = Pace(tick_s=0.005, retry_s=0.01, stalled_s=0.01, checkpoints_s=0.005)


wait_for = partial(waiting.wait_for, pause_s=0.003)  # less than a tick of `FAST`


def succeed(container: FakeContainer) -> int:
    """The simplest script: it prints, and writes a model."""
    container.print("hello")
    container.write("/opt/ml/model/weights", "w")
    return 0


class World:
    """What survives a crash (engine, files), and the server that runs now."""

    def __init__(self, root: Path) -> None:
        """A first server runs."""
        self.clock = FakeClock()
        self.config = config(root / "home", pace=FAST)
        self.config.home.mkdir()
        self.store = SqliteStore(self.config.home / "state.sqlite")
        self.objects = FakeObjects(root / "objects", "out", "data")
        self.runner = FakeRunner(self.clock, succeed, windtunnel_training=Image())
        self.fuse = Fuse(None)
        self.services: list[TrainingJobService] = []
        self.service = self.serve()

    def serve(self, fuse: Fuse | None = None) -> TrainingJobService:
        """A new server on what there is."""
        self.fuse = fuse or Fuse(None)
        self.service = TrainingJobService(
            Ports(
                Mortal(self.store, self.fuse),
                Mortal(self.runner, self.fuse),
                Mortal(self.objects, self.fuse),
                self.clock,
                self.config,
            )
        )
        self.services.append(self.service)
        return self.service

    def crash_and_serve(self) -> TrainingJobService:
        """Kill -9, and a new server that adopts."""
        self.fuse.blow()
        service = self.serve()
        service.resume()
        return service

    def outlives(self, fuse: Fuse, accepted: dict[str, Any]) -> bool:
        """Whether a server brings a job to rest before the fuse blows; then, or after that, the next one has it."""
        dying = self.serve(fuse)
        with suppress(Crash):
            dying.create(accepted)
            wait_for(lambda: fuse.blown.is_set() or not dying.busy())
        survived = not fuse.blown.is_set()
        heir = self.crash_and_serve()
        if self.store.get_job(accepted["TrainingJobName"]) is None:
            heir.create(accepted)  # died before the request was recorded: the client asks again
        return survived

    def job(self, name: str = "job") -> Job:
        """The record."""
        job = self.store.get_job(name)
        assert job is not None
        return job

    def secondary(self, name: str = "job") -> str:
        """Where the job stands."""
        return self.job(name).lifecycle.secondary

    def reach(self, secondary: str, name: str = "job") -> None:
        """Wait until the job stands there."""
        wait_for(lambda: self.secondary(name) == secondary, f"{name} reaching {secondary}")

    def finish(self, name: str = "job") -> Job:
        """Wait until the job has ended and is cleaned up."""
        # The end stays: not asked as often as for a status that another follows.
        wait_for(lambda: self.job(name).lifecycle.finished, f"the end of {name}", pause_s=0.01)
        wait_for(lambda: not self.service.busy(), f"the clean-up of {name}")
        gone = self.config.jobs / name
        wait_for(lambda: self.runner.jobs() == set() and not gone.exists(), f"the clean-up of {name}")
        return self.job(name)

    def train(self, accepted: dict[str, Any]) -> None:
        """A job from its request to its training."""
        self.service.create(accepted)
        self.reach("Training", accepted["TrainingJobName"])

    def run(self, accepted: dict[str, Any]) -> Job:
        """A job from its request to its end."""
        self.service.create(accepted)
        return self.finish(accepted["TrainingJobName"])

    def lines(self, name: str = "job", host: str = "algo-1") -> list[str]:
        """All stored lines of a host."""
        streams = [s.name for s in self.store.log_streams(f"{name}/") if s.host == host]
        assert len(streams) <= 1, "a host has one stream, however often it was adopted"
        return [event.message for stream in streams for event in self.store.read_log(stream, 0, 100_000)]

    def close(self) -> None:
        """End everything."""
        self.fuse.blow()
        for service in self.services:
            service.shutdown()
        self.runner.close()
        self.store.close()


@pytest.fixture(scope="session", autouse=True)
def _quiet_crashes() -> Iterator[None]:
    with quiet_crashes():
        yield


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A fresh backend."""
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture
def objects(tmp_path: Path) -> FakeObjects:
    """Nothing in the bucket `out`."""
    return FakeObjects(tmp_path / "objects", "out")


@pytest.fixture
def folders(tmp_path: Path) -> JobPaths:
    """Of the job `job`; none is made yet."""
    return JobPaths(tmp_path / "jobs" / "job")
