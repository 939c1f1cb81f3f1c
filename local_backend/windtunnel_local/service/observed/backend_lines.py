"""Adds the backend's own lines to the end of a job's log."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import Ports

MOST_LINES = 20
"""Most lines about files that are left out of an upload."""
_LATEST = 2**62


def say(ports: Ports, job: Job, *words: str) -> None:
    """Append each text as a line to the first host's log; do nothing if the job has no log."""
    stream = _stream(ports, job)
    if stream is not None:
        for text in words:
            line = LogLine(ports.now_ms(), _line(text))
            batch = LogBatch((line,), ports.store.log_cursor(stream) or "")
            ports.store.append_log(stream, batch, line.timestamp_ms)


def say_once(ports: Ports, job: Job, left_out: Sequence[str]) -> None:
    """Append what was left out of an upload. Skip lines that the log's end has already: an upload may be repeated."""
    stream = _stream(ports, job)
    if stream is None or not left_out:
        return
    lines = list(dict.fromkeys(left_out))
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"{len(lines) - MOST_LINES} more files are not stored."]
    said = {event.message for event in ports.store.read_log_before(stream, _LATEST, 2 * MOST_LINES)}
    say(ports, job, *(words for words in lines if _line(words) not in said))


def _stream(ports: Ports, job: Job) -> str | None:
    streams = [stream.name for stream in ports.store.log_streams(f"{job.name}/")]
    stream = job.stream(job.hosts[0])
    return stream if stream in streams else min(streams, default=None)


def _line(words: str) -> str:
    return f"Windtunnel: {words}"
