"""A container's output is whole, also where the clock was set back amid it and another server reads on."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from io import BytesIO
from typing import Any

import pytest
import requests

from windtunnel_local.runner.docker import logs
from windtunnel_local.runner.docker.log_cursor import split_timestamp
from windtunnel_local.runner.docker.logs import follow

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
_PATIENCE_S = 60.0


class Raw(BytesIO):
    """An answer's body that nobody has to shut down. If it ``stays_open``, it ends once somebody ends it."""

    def __init__(self, data: bytes, *, stays_open: bool) -> None:
        super().__init__(data)
        self._end = threading.Event()
        if not stays_open:
            self._end.set()

    @property
    def closed(self) -> bool:
        """Asked by whoever ends the stream, and answered so that there is no socket to shut down."""
        self._end.set()
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Also though it says that it is closed."""
        found = super().read(size)
        if not found:
            assert self._end.wait(_PATIENCE_S)
        return found


class Engine:
    """An engine that keeps one log, as an older or a newer one answers for it; also its `api`."""

    base_url, api_version = "http://engine", "1.41"

    def __init__(self, *, newer: bool) -> None:
        self.newer = newer
        self.log: list[bytes] = []
        self.stays_open = False
        """Whether a stream that follows the log does not end with what there is."""
        self.followed = 0
        self.api = self

    def print(self, text: str, moment: datetime) -> None:
        """A line of stdout."""
        self.log.append(f"{moment:%Y-%m-%dT%H:%M:%S.%f}000Z {text}\n".encode())

    def get(self, url: str, params: dict[str, Any], **_: Any) -> requests.Response:
        """What there is of the log; its stream ends there."""
        assert url.endswith("/logs")
        since_ns = round(float(params.get("since", 0)) * 1e9)
        found = [split_timestamp(message)[0] >= since_ns for message in self.log]
        if self.newer and True in found:  # it looks for the first
            found = [number >= found.index(True) for number in range(len(found))]
        sent = [message for message, is_sent in zip(self.log, found, strict=True) if is_sent]
        if "tail" in params:
            sent = sent[-int(params["tail"]) :]
        response = requests.Response()
        response.status_code = 200
        self.followed += params["follow"]
        data = b"".join(struct.pack(">BxxxL", 1, len(m)) + m for m in sent)
        response.raw = Raw(data, stays_open=self.stays_open and params["follow"])
        return response


def states(*running: bool) -> Callable[[], bool]:
    """Whether the container runs, each time that it is asked; in the end it does not."""
    left: Iterator[bool] = iter(running)
    return lambda: next(left, False)


@pytest.fixture(params=["older engine", "newer engine"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Both ideas of `since`."""
    return Engine(newer=request.param == "newer engine")


@pytest.mark.parametrize("runs", [True, False])
def test_a_clock_set_back_while_no_server_runs_loses_nothing(engine: Engine, runs: bool) -> None:
    """Nor does it repeat a line; whether the container still runs when the next server comes, or not."""
    for number in range(10):
        engine.print(f"before {number}", NOON + timedelta(seconds=number))
    first = list(follow(engine, "job", None, states()))  # type: ignore[arg-type]
    for number in range(10):
        engine.print(f"after {number}", NOON - HOUR + timedelta(seconds=number))
    then = list(follow(engine, "job", first[-1].cursor, states(runs)))  # type: ignore[arg-type]
    assert [line.text for batch in then for line in batch.lines] == [f"after {n}" for n in range(10)]
    last = then[-1].cursor
    engine.print("last", NOON - HOUR + timedelta(seconds=60))
    rest = list(follow(engine, "job", last, states(runs)))  # type: ignore[arg-type]
    assert [line.text for batch in rest for line in batch.lines] == ["last"]


def test_long_lines_make_short_batches(engine: Engine) -> None:
    """What a job printed while no server ran is not held in memory whole, though its lines are few."""
    for _ in range(20):
        engine.print("x" * (1 << 20), NOON)
    for running in (states(), states(True)):
        batches = list(follow(engine, "job", None, running))  # type: ignore[arg-type]
        assert sum(len(batch.lines) for batch in batches) == 20
        assert max(sum(len(line.text) for line in batch.lines) for batch in batches) < 10 << 20


def test_a_clock_set_back_once_the_next_server_follows_loses_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asked the engine for what is newer than all that comes now, and hears nothing."""
    monkeypatch.setattr(logs, "_IDLE_CHECK_S", 0.01)
    engine.print("before", NOON)
    first = list(follow(engine, "job", None, states()))  # type: ignore[arg-type]
    engine.stays_open = True

    def running() -> bool:
        if len(engine.log) == 1 and engine.followed:
            engine.print("after", NOON - HOUR)
        return True

    then = follow(engine, "job", first[-1].cursor, running)  # type: ignore[arg-type]
    try:
        assert [line.text for line in next(then).lines] == ["after"]
    finally:
        then.close()  # type: ignore[attr-defined]  # it is a generator
