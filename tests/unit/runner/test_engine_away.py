"""What helps the runner over an engine that was away: its times, and the pipes that it did not read."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.waiting import wait_for
from windtunnel_local.runner.docker import shims
from windtunnel_local.runner.docker.engine_time import engine_time
from windtunnel_local.runner.docker.pipes import OutputPipes

ID = f"test-{os.getpid()}"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-21T06:38:29.894562259Z", datetime(2026, 11, 21, 6, 38, 29, 894562, timezone.utc)),
        ("2026-11-21T06:38:29Z", datetime(2026, 11, 21, 6, 38, 29, 0, timezone.utc)),
        ("2026-11-21T08:08:29.5+01:30", datetime(2026, 11, 21, 6, 38, 29, 500000, timezone.utc)),
        ("2026-11-20T23:38:29.000001-07:00", datetime(2026, 11, 21, 6, 38, 29, 1, timezone.utc)),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        (None, None),
    ],
)
def test_times_of_the_engine(text: str | None, moment: datetime | None) -> None:
    """Of containers and of networks; "never" is no time."""
    assert engine_time(text) == moment


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_any_zone_is_the_same_moment(naive: datetime, minutes: int) -> None:
    """An engine writes networks' times in its own zone."""
    moment = naive.replace(tzinfo=timezone.utc)
    assert engine_time(moment.astimezone(timezone(timedelta(minutes=minutes))).isoformat()) == moment


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a container's shim and has printed into its pipes; they are read by nobody."""
    script = (
        "mkfifo init-stdout init-stderr; exec 3<>init-stdout 4<>init-stderr;"
        r" printf 'one\r\ntwo' >&3; printf 'bad \377\n\n' >&4; > ready; while :; do sleep 60; done"
    )
    arguments = ["containerd-shim-runc-v2", "-c", script, "-id", ID]
    process = subprocess.Popen(arguments, executable="/bin/bash", cwd=tmp_path, start_new_session=True)
    wait_for((tmp_path / "ready").exists)
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_lines_outlive_the_shim(shim: subprocess.Popen[bytes]) -> None:
    """While somebody holds the pipes; whoever asks again is told the same."""
    pipes = OutputPipes(ID)
    try:
        assert len(pipes) == 2
        os.killpg(shim.pid, signal.SIGKILL)
        shim.wait()
        assert pipes.rest() == ["one", "two", "bad \ufffd", ""]
        assert pipes.rest() == ["one", "two", "bad \ufffd", ""]
    finally:
        pipes.close()


def test_a_shim_ends_with_what_it_runs(shim: subprocess.Popen[bytes]) -> None:
    """The processes of a container that its engine has forgotten must not run beside the next attempt's."""
    children = Path(f"/proc/{shim.pid}/task/{shim.pid}/children")

    def sleeper() -> list[Path]:
        found = [Path("/proc") / number for number in children.read_text().split()]
        return [process for process in found if (process / "comm").read_text() == "sleep\n"]

    (child,) = wait_for(sleeper)
    shims.end(ID)
    assert shim.wait(60) == -signal.SIGKILL
    assert not child.exists() or "Z" in (child / "stat").read_text()
    assert shims.find(ID) is None
    shims.end(ID)


def test_no_shim() -> None:
    """Of a container elsewhere, nothing is held and nothing is read."""
    pipes = OutputPipes("there is no such container")
    assert (len(pipes), pipes.rest()) == (0, [])
    pipes.close()
    pipes.close()
