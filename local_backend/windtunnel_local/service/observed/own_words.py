"""What the backend itself says in a job's log, behind what the job has printed."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import Ports

MOST_LINES = 20
"""Of what is left out of an upload."""
_LATEST = 2**62


def say(ports: Ports, job: Job, *words: str) -> None:
    """A line each in the first host's log; none where the job has no log."""
    stream = _stream(ports, job)
    if stream is not None:
        for text in words:
            line = LogLine(ports.now_ms(), _line(text))
            batch = LogBatch((line,), ports.store.log_cursor(stream) or "")
            ports.store.append_log(stream, batch, line.timestamp_ms)


def say_once(ports: Ports, job: Job, left_out: Sequence[str]) -> None:
    """What is left out of an upload; not what the log's end says already, for an upload may be done again."""
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
