"""A system that starts no more threads: nothing is left half begun."""

from __future__ import annotations

import threading

import pytest

from tests.unit.service.conftest import World
from tests.unit.service.samples import request
from windtunnel_local.service.ground.errors import JobNotFound, OutOfThreads


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Beginnings of the names of threads that cannot be started now."""
    names: set[str] = set()
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith(tuple(names)):
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    return names


def test_a_job_that_cannot_be_started_is_not_there(world: World, refused: set[str]) -> None:
    """It would be InProgress for ever. Its name is free, and the server lets go as ever."""
    refused.add("job ")
    with pytest.raises(OutOfThreads, match="ulimit -u"):
        world.service.create(request())
    with pytest.raises(JobNotFound):
        world.service.describe("job")
    assert not world.service.busy()
    refused.clear()
    assert world.run(request()).lifecycle.status == "Completed"


def test_a_job_that_runs_out_of_them(world: World, refused: set[str]) -> None:
    """Its reason names the limit."""
    refused.add("job/algo-1")
    life = world.run(request()).lifecycle
    assert life.status == "Failed"
    assert str(life.failure_reason).startswith("InternalServerError: The backend can start no more threads.")


def test_a_server_that_cannot_adopt(world: World, refused: set[str]) -> None:
    """It ends as it would in order; the next one adopts."""
    refused.add("sweep")
    with pytest.raises(RuntimeError):
        world.service.resume()
    world.service.shutdown()
    refused.clear()
    world.serve().resume()
    assert world.run(request()).lifecycle.status == "Completed"
