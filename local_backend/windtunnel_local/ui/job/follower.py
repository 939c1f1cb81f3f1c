"""What is new of a job since the last look: lines of its log, and parts of its page."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from datetime import datetime
from typing import Any

import anyio

from windtunnel_local.service.ground.errors import JobNotFound, LogsNotFound
from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.service.service import Service
from windtunnel_local.ui.job import documents
from windtunnel_local.ui.job.log_pages import JobLog
from windtunnel_local.ui.job.log_position import Position, written
from windtunnel_local.ui.job.wire import lines_up_to

MOST_LINES = 5000
"""Of one look: 20,000 a second, as there are four."""
TOO_FAR = 20_000
"""Lines that a reader may be behind; beyond that he is taken to the end, and can go back by himself."""
_TAIL = 1000
_PHASES_EVERY_S = 5
_METRICS_EVERY_S = 2.0
_METRICS_AFTER_S = 5.0
"""A line's values are found some time after it was stored."""
_METRICS_SHARE = 20
"""The charts are made anew after this many times the time that making them took."""
_SETTLING_MS = 2000
"""A stream is read again for so long after its last line: two writes may bear the same time."""

_SOON_S = 0.25
_SELDOM_S = 1.0

Render = Callable[[str, Mapping[str, Any]], str]
Look = Callable[[], Any]


class Follower:
    """One reader of one job. Each `look` returns what is new; used by one thread at a time."""

    def __init__(
        self, backend: Service, name: str, render: Render, position: Position, host: str | None
    ) -> None:
        """``render``: makes a part, by its name, of a description; ``position``: in the log; ``host``: None is all."""
        self.ended = False
        self._backend = backend
        self._name = name
        self._render = render
        self._position: dict[str, int] = dict(position)
        self._host = host
        self._log = JobLog(backend.logs, name)
        self._written_ms: dict[str, int] = {}
        self._keys: dict[str, Hashable] = {}
        self._html: dict[str, str] = {}
        self._metrics_due = 0.0
        self._read = 0
        self._grown = time.monotonic()

    def look(self) -> dict[str, Any] | None:
        """``parts``: HTML by id. ``log``: lines, as `wire` has them. ``end``: why nothing follows."""
        try:
            return self._look()
        except (JobNotFound, LogsNotFound):  # its log may go while it is read
            self.ended = True
            return {"end": "The job has been deleted."}

    def _look(self) -> dict[str, Any] | None:
        job = self._backend.jobs.describe(self._name)
        message: dict[str, Any] = {}
        log, more = self._lines()
        if log is not None:
            message["log"] = log
        parts = self._parts(job)
        if parts:
            message["parts"] = parts
        if job["TrainingJobStatus"] in TERMINAL and not more and log is None:
            # Its last line was there before its status: see `service.job_run`.
            self.ended = True
            message["end"] = f"The job has ended: {job['TrainingJobStatus']}. All of its log is here."
        return message or None

    def _lines(self) -> tuple[dict[str, Any] | None, bool]:
        """New lines for the page, and whether there are more already."""
        streams = self._log.streams(self._host)
        fresh = [name for name, at in streams.items() if self._is_fresh(name, at)]
        if not fresh:
            return None, False
        page = self._log.after(self._position, MOST_LINES, fresh)
        if page.more and self._behind(fresh) > TOO_FAR:
            tail = self._log.before(None, _TAIL, list(streams))
            self._position = dict(tail.end)
            return {**lines_up_to(tail.lines, tail.end), "begin": written(tail.begin), "jump": True}, False
        self._written_ms = streams if not page.more else {}
        self._position.update(page.end)
        self._read += len(page.lines)
        self._grown = time.monotonic() if page.lines else self._grown
        return (lines_up_to(page.lines, self._position) if page.lines else None), page.more

    def _is_fresh(self, stream: str, written_ms: int) -> bool:
        return (
            self._written_ms.get(stream) != written_ms
            or written_ms > self._backend.clock.now().timestamp() * 1000 - _SETTLING_MS
        )

    def _behind(self, streams: list[str]) -> int:
        end = self._log.before(None, 1, streams).end
        return sum(end[name] - self._position.get(name, 0) for name in streams)

    def _parts(self, job: Mapping[str, Any]) -> dict[str, str]:
        """Those that have become others."""
        found = {}
        for name, key in self._states(job).items():
            if self._keys.get(name, ()) == key:
                continue
            begun = time.monotonic()
            html = self._render(name, job)
            if name == "metrics":
                spent = time.monotonic() - begun
                self._metrics_due = begun + max(_METRICS_EVERY_S, _METRICS_SHARE * spent)
            self._keys[name] = key
            if self._html.get(name) != html:
                self._html[name] = found[name] = html
        return found

    def _states(self, job: Mapping[str, Any]) -> dict[str, Hashable]:
        """By part, what it depends on; as cheap to find out as can be, for it is asked each time."""
        objects = self._backend.objects
        ended = job["TrainingJobStatus"] in TERMINAL
        life = job["LastModifiedTime"], job["TrainingJobStatus"], job["SecondaryStatus"]
        counted = documents.stamp(objects, job, "counters.json"), ended
        due = ended or time.monotonic() >= self._metrics_due
        settling = min(time.monotonic(), self._grown + _METRICS_AFTER_S) // _METRICS_EVERY_S
        states: dict[str, Hashable] = {
            "head": life,
            "phases": (life, None if ended else _step_of(self._backend.clock.now())),
            "metrics": (self._read, ended, settling) if due else self._keys.get("metrics", ()),
            "findings": counted,
            "step": counted,
            "files": (life, counted),
            "tensorboard": ended,
        }
        usage = documents.stamp(objects, job, "usage.json")
        if usage:  # the last values stay, once nothing runs any more
            states["cores"] = usage
        return states


async def messages(follower: Follower, look: Callable[[Look], Awaitable[Any]]) -> AsyncIterator[Any]:
    """Of each look, four times a second while something happens, and once a second while nothing does.

    ``look``: calls in a thread.
    """
    pause = _SOON_S
    while not follower.ended:
        message = await look(follower.look)
        yield message
        pause = _SOON_S if message else min(_SELDOM_S, pause * 2)
        await anyio.sleep(0.0 if follower.ended else pause)


def _step_of(now: datetime) -> int:
    return int(now.timestamp() / _PHASES_EVERY_S)
