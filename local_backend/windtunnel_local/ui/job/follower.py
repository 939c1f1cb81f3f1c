"""Finds what is new in a job since the last look: lines of its log, and parts of its page."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
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
"""The most lines of one look; with four looks a second, 20,000 lines a second."""
TOO_FAR = 20_000
"""How many lines a reader may be behind. Beyond that the log jumps to its end; the reader can page back."""
_TAIL = 1000
_PHASES_EVERY_S = 5
_METRICS_EVERY_S = 2.0
_METRICS_AFTER_S = 5.0
"""Metrics are looked for so long after the last line, as values are found some time after a line was stored."""
_METRICS_SHARE = 20
"""The charts are drawn again after this many times the time that drawing them took."""
_SETTLING_MS = 2000
"""A stream is read again for so long after its last line, because two writes may have the same time."""

_SOON_S = 0.25
_SELDOM_S = 1.0

Render = Callable[[str, Mapping[str, Any]], str]
Look = Callable[[], Any]


class Follower:
    """Follows one job for one open page. Each `look` returns what is new. For one thread at a time."""

    def __init__(
        self, backend: Service, name: str, render: Render, position: Position, host: str | None
    ) -> None:
        """``render``: makes the HTML of a part; ``position``: where to begin in the log; ``host``: None means all."""
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
        """The news, if any. ``parts``: HTML by id. ``log``: lines (see `wire`). ``end``: why nothing follows."""
        try:
            return self._look()
        except (JobNotFound, LogsNotFound):  # the log may be deleted during the reading
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
            # The last line is stored before the final status: see `service.job_run`.
            self.ended = True
            message["end"] = f"The job has ended: {job['TrainingJobStatus']}. All of its log is here."
        return message or None

    def _lines(self) -> tuple[dict[str, Any] | None, bool]:
        """New lines for the page, and whether there are more at once."""
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
        """The parts of the page whose HTML has changed."""
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
        """For each part a value that changes when the part must be made again. Cheap, as each look computes it."""
        objects = self._backend.objects
        ended = job["TrainingJobStatus"] in TERMINAL
        life = job["LastModifiedTime"], job["TrainingJobStatus"], job["SecondaryStatus"]
        counted = documents.stamp(objects, job, "counters.json"), ended
        due = ended or time.monotonic() >= self._metrics_due
        settling = min(time.monotonic(), self._grown + _METRICS_AFTER_S) // _METRICS_EVERY_S
        states: dict[str, Hashable] = {
            "head": life,
            "phases": (life, None if ended else int(self._backend.clock.now().timestamp() / _PHASES_EVERY_S)),
            "metrics": (self._read, ended, settling) if due else self._keys.get("metrics", ()),
            "findings": counted,
            "step": counted,
            "files": (life, counted),
            "tensorboard": ended,
        }
        usage = documents.stamp(objects, job, "usage.json")
        if usage:  # without it, the last values stay on the page
            states["cores"] = usage
        return states


async def messages(follower: Follower, look: Callable[[Look], Awaitable[Any]]) -> AsyncIterator[Any]:
    """What each look returns: four looks a second while something happens, one a second otherwise.

    ``look``: calls a function in a thread.
    """
    pause = _SOON_S
    while not follower.ended:
        message = await look(follower.look)
        yield message
        pause = _SOON_S if message else min(_SELDOM_S, pause * 2)
        await anyio.sleep(0.0 if follower.ended else pause)
