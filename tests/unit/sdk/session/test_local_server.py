"""Starting the backend: once, however many ask; with its log when it fails; waited for only so long."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.processes import runs
from tests.waiting import wait_for
from windtunnel import settings
from windtunnel.errors import BackendError
from windtunnel.session import local_server
from windtunnel.session.local import LocalSession
from windtunnel.session.local_server import Backend, Credentials

PROGRAM = Path(__file__).with_name("fake_backend.py")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose servers are ended with the test."""
    folder = tmp_path / "h"
    yield folder
    for pid in starts(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        wait_for(lambda pid=pid: not runs(pid))


def starts(home: Path) -> list[int]:
    path = home / "starts"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def backend(home: Path, mode: str = "ok", timeout_s: float = 60.0) -> Backend:
    return Backend(home, [sys.executable, str(PROGRAM), mode], timeout_s)


def test_started_once_then_found_and_asked_to_leave(home: Path) -> None:
    """The first call starts it, in a home of the user's own, later calls find it; it is gone when `stop` returns.

    The server has a session of its own: Ctrl-C in the terminal does not reach it.
    """
    found = backend(home).ensure()
    assert backend(home).ensure() == found == backend(home).running()
    assert starts(home) == [found.pid]
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert os.getsid(found.pid) == found.pid
    assert backend(home).stop() == found
    assert backend(home).running() is None
    assert backend(home).stop() is None


def test_many_at_once_start_one(home: Path) -> None:
    """Concurrent fits, each with its own session object, start a single server."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: backend(home, "slow").ensure(), range(8)))
    assert len(set(found)) == 1
    assert len(starts(home)) == 1


def test_dead_server_is_replaced(home: Path) -> None:
    """backend.json of a killed server deceives nobody."""
    first = backend(home).ensure()
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: not runs(first.pid))
    assert backend(home).running() is None
    assert backend(home).ensure().pid != first.pid


@pytest.mark.parametrize("content", ["", "{}", '{"endpoint": 1, "pid": "x", "version": ""}', "[]"])
def test_damaged_record(home: Path, content: str) -> None:
    """A backend.json that cannot be read counts as none."""
    home.mkdir()
    (home / "backend.json").write_text(content)
    assert backend(home).running() is None


def test_recycled_pid(home: Path) -> None:
    """A record whose process lives but is not the server counts as none."""
    home.mkdir()
    record = {"endpoint": "http://127.0.0.1:9", "pid": os.getpid(), "version": "0", "runner": "docker"}
    (home / "backend.json").write_text(json.dumps(record))
    assert backend(home).running() is None


def test_a_server_that_fails_shows_its_log(home: Path) -> None:
    """The error has the exit code, what it printed this time, where the log is and the next command."""
    home.mkdir()
    (home / "backend.log").write_text("from an earlier start\n")
    with pytest.raises(BackendError, match="exit code 3") as caught:
        backend(home, "crash").ensure()
    assert "no Docker engine: start it with `service docker start`" in str(caught.value)
    assert "an earlier start" not in str(caught.value)
    assert "windtunnel doctor" in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "1", "{}", "[" * 100_000, '{"access_key_id": 1}'])
def test_a_damaged_file_of_keys_is_named(home: Path, content: str) -> None:
    """As is one of another program."""
    home.mkdir()
    (home / "credentials.json").write_text(content)
    with pytest.raises(BackendError, match=r"credentials\.json cannot be read"):
        backend(home).credentials()


def test_a_server_that_never_answers(home: Path) -> None:
    """Waiting has an end, and the process does not stay behind."""
    with pytest.raises(BackendError, match=r"did not answer within 4 s") as caught:
        backend(home, "mute", 4).ensure()
    assert "thinking" in str(caught.value)
    assert not runs(starts(home)[0])


def test_a_running_server_that_is_too_slow_is_not_told_as_one_that_failed(home: Path) -> None:
    """Its machine is full, and it holds the home, so that no other starts; its jobs go on, and it is left alone."""
    there = backend(home).ensure()
    os.kill(there.pid, signal.SIGSTOP)
    try:
        with pytest.raises(
            BackendError, match=r"runs and did not answer within 3 s.*\n.*Jobs go on"
        ) as caught:
            backend(home, "second", 3).ensure()
    finally:
        os.kill(there.pid, signal.SIGCONT)
    assert str(there.pid) in str(caught.value) and "windtunnel logs -f NAME" in str(caught.value)
    assert backend(home).ensure() == there


def test_a_server_whose_disk_is_full_is_told_as_that(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nothing to write its reason with: "It printed: (nothing)" was all."""
    monkeypatch.setattr(local_server, "_LEAST_FREE_BYTES", 1 << 62)
    with pytest.raises(BackendError, match=r"cannot keep its state in .*No space left.*a disk that has room"):
        Backend(home, ["false"]).ensure()
    with pytest.raises(BackendError, match="no Docker engine: start it"):  # this one has said why
        backend(home, "crash").ensure()


def test_a_program_that_does_not_exist(home: Path) -> None:
    """Even that is a clean error."""
    with pytest.raises(BackendError, match="cannot be started"):
        Backend(home, ["/nonexistent/python"]).ensure()


@pytest.mark.parametrize("call", [Backend.ensure, Backend.keep])
def test_a_home_that_cannot_be_is_said_with_what_to_do(
    tmp_path: Path, call: Callable[[Backend], object]
) -> None:
    """`up` and `env` alike: a file is in its place."""
    (tmp_path / "file").touch()
    with pytest.raises(BackendError, match=r"cannot keep its state in .*file/h.*Set WINDTUNNEL_HOME"):
        call(backend(tmp_path / "file" / "h"))


def test_account_before_the_first_start(home: Path) -> None:
    """A request can be built before the backend has ever run; afterwards its own account counts."""
    assert backend(home).account_and_region() == ("000000000000", "us-east-1")
    with pytest.raises(BackendError, match="windtunnel up"):
        backend(home).credentials()


def test_secret_is_not_shown() -> None:
    """Printing credentials does not print the secret."""
    assert "hidden" not in repr(Credentials("AK", "hidden", "1", "r"))


def test_home_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """WINDTUNNEL_HOME, else ~/.windtunnel."""
    monkeypatch.setenv("WINDTUNNEL_HOME", "/x/y")
    assert settings.home() == Path("/x/y")
    monkeypatch.delenv("WINDTUNNEL_HOME")
    assert settings.home() == Path.home() / ".windtunnel"


def test_session_warm_up_fails_once(home: Path) -> None:
    """A backend that cannot start is reported by the first call, not waited for twice."""
    session = LocalSession(backend=backend(home, "crash"))
    session.warm_up()
    with pytest.raises(BackendError, match="exit code 3"):
        session.service.describe_job("j")
    assert 1 <= len(starts(home)) <= 2


def test_a_backend_has_left_when_its_process_has_ended(home: Path) -> None:
    """Not when it only takes no more calls: what it still writes must not surprise whoever removes the home."""
    running = backend(home, "lingers").ensure()
    assert backend(home).stop() == running
    assert not runs(running.pid)


@pytest.mark.parametrize("mode", ["old", "removed"])
def test_a_backend_of_another_version_or_a_removed_installation_is_replaced(home: Path, mode: str) -> None:
    """It would answer, and fail in the middle of a job. A sound one is kept."""
    old = backend(home, mode).ensure()
    new = backend(home).ensure()
    assert new.pid != old.pid
    assert not runs(old.pid)
    assert backend(home).ensure() == new
