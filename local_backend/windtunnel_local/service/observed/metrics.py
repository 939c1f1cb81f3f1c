"""MetricDefinitions over a job's log: FinalMetricDataList."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import IO, Any

from windtunnel_local.service.model import Job
from windtunnel_local.service.observed import metric_scan
from windtunnel_local.service.ports import LogBatch, LogEvent, LogLine
from windtunnel_local.service.running.backend import Backend
from windtunnel_local.service.running.hosts import stream_name

_LOG_PAGE = 1000

CPU_LIMIT_S = 60
"""How much processor time the expressions may take for a whole log."""


class MetricsUnavailable(Exception):
    """The log could not be searched; the message is for the job's user."""


def metrics_of(job: Job, backend: Backend) -> Sequence[Mapping[str, Any]]:
    """What the job's expressions find.

    A hopeless one, or a process that cannot be started, costs the metrics, not the job; the log says so.
    """
    definitions = job.request["AlgorithmSpecification"].get("MetricDefinitions", [])
    if not definitions:
        return ()
    try:
        return final_metrics(definitions, _log_events(job, backend))
    except (MetricsUnavailable, OSError) as error:
        stream = stream_name(job, job.hosts[0])
        text = str(error) if isinstance(error, MetricsUnavailable) else f"the metrics are not known: {error}"
        line = LogLine(backend.now_ms(), f"Windtunnel: {text}")
        batch = LogBatch((line,), backend.store.log_cursor(stream) or "")
        backend.store.append_log(stream, batch, line.timestamp_ms)
        return ()


def _log_events(job: Job, backend: Backend) -> Iterator[LogEvent]:
    for host in job.hosts:
        stream, first = stream_name(job, host), 0
        while page := backend.store.read_log(stream, first, _LOG_PAGE):
            yield from page
            first = page[-1].sequence + 1


def final_metrics(
    definitions: Sequence[Mapping[str, str]], events: Iterable[LogEvent], cpu_limit_s: int = CPU_LIMIT_S
) -> tuple[Mapping[str, Any], ...]:
    """The last value of each metric that was ever printed, in the order of the definitions.

    The first group of the regular expression is the value; what is no number is passed over.
    Blocks while a process of its own searches, see `metric_scan`.

    Raises:
        MetricsUnavailable: an expression takes too long.
    """
    pairs = [[definition["Name"], definition["Regex"]] for definition in definitions]
    names = list(dict.fromkeys(name for name, _ in pairs))
    with subprocess.Popen(
        [sys.executable, "-I", "-S", metric_scan.__file__, str(cpu_limit_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="ascii",  # `json.dumps` escapes all else
    ) as process:
        try:
            answer = _ask(process, pairs, events)
        finally:
            process.kill()
    try:
        found: metric_scan.Found = json.loads(answer)
    except ValueError:
        raise MetricsUnavailable(
            f"the metrics {', '.join(names)} are not known: to find them in the log took more than"
            f" {cpu_limit_s} s. Simplify their Regex (no leading '.*', no nested repetition)."
        ) from None
    return tuple(_metric(name, *found[name]) for name in names if name in found)


def _ask(process: subprocess.Popen[str], pairs: list[list[str]], events: Iterable[LogEvent]) -> str:
    """Hand over everything, then read the answer; empty when the process was killed."""
    stdin, stdout = _pipes(process)
    with suppress(BrokenPipeError), stdin:
        stdin.write(json.dumps(pairs) + "\n")
        for event in events:
            stdin.write(json.dumps([event.timestamp_ms, event.message]) + "\n")
    return stdout.read()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise TypeError("the process was started without pipes")
    return process.stdin, process.stdout


def _metric(name: str, value: float, timestamp_ms: int) -> Mapping[str, Any]:
    moment = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    return {"MetricName": name, "Value": value, "Timestamp": moment}
