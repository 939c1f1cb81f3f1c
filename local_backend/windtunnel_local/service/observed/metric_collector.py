"""Searches a job's log for its MetricDefinitions, while it is written: for CloudWatch and FinalMetricDataList.

The search goes on from where it stopped; the values found and the new position are stored in one
transaction, so that after a crash each value is stored exactly once.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import IO, Any

from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import LogEvent, MetricValue, Ports
from windtunnel_local.service.observed import backend_lines, metric_scan

_log = logging.getLogger(__name__)

_LOG_PAGE = 1000
_INTERVAL_S = 1.0

CPU_LIMIT_S = 60
"""Most processor seconds that all expressions of a job may take for its whole log."""


class MetricsUnavailable(Exception):
    """The log could not be searched; the message is for the user."""


class Scanner:
    """Searches in a process of its own, which the first search starts. Not thread-safe."""

    def __init__(self, definitions: Sequence[Mapping[str, str]], cpu_limit_s: int = CPU_LIMIT_S) -> None:
        """``definitions``: as in MetricDefinitions; ``cpu_limit_s``: processor seconds of all searches together."""
        self._pairs = [[definition["Name"], definition["Regex"]] for definition in definitions]
        self._cpu_limit_s = cpu_limit_s
        self.given_up: list[tuple[str, str]] = []
        """Name and Regex of the expressions that took too long; the search goes on without them."""
        self._process: subprocess.Popen[str] | None = None

    def search(self, events: Sequence[LogEvent]) -> list[MetricValue]:
        """The values that the expressions find, in order of the lines. Blocks.

        Raises:
            MetricsUnavailable: the searches have used up ``cpu_limit_s``, or the process cannot be started.
        """
        try:
            stdin, stdout = self._pipes()
            stdin.write(json.dumps([[event.timestamp_ms, event.message] for event in events]) + "\n")
            stdin.flush()
            found, given_up = json.loads(stdout.readline())
        except (BrokenPipeError, ValueError):
            names = dict.fromkeys(name for name, _ in self._pairs)
            raise MetricsUnavailable(
                f"the metrics {', '.join(names)} are not known: to find them in the log took more than"
                f" {self._cpu_limit_s} s. Simplify their Regex (no leading '.*', no nested repetition)."
            ) from None
        except OSError as error:
            raise MetricsUnavailable(f"the metrics are not known: {error}") from error
        self.given_up += [(name, regex) for name, regex in given_up]
        return [MetricValue(*value) for value in found]

    def close(self) -> None:
        """End the process. Idempotent."""
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes its pipes and waits
                self._process = None

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", metric_scan.__file__, str(self._cpu_limit_s)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="ascii",  # `json.dumps` escapes all other characters
            )
            _piped(self._process.stdin).write(json.dumps(self._pairs) + "\n")
        return _piped(self._process.stdin), _piped(self._process.stdout)


def _piped(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise TypeError("the process was started without pipes")
    return pipe


class MetricCollector:
    """Collects one job's metrics in a thread of its own. If an expression is too slow, only metrics are lost."""

    def __init__(self, job: Job, ports: Ports) -> None:
        """Starts nothing yet."""
        self._job = job
        self._ports = ports
        self._definitions = job.request["AlgorithmSpecification"].get("MetricDefinitions", [])
        self._scanner = Scanner(self._definitions)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._hopeless: MetricsUnavailable | None = None

    def start(self) -> None:
        """Start the thread that searches new lines. Idempotent; does nothing for a job without definitions."""
        if self._definitions and self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"metrics {self._job.name}", daemon=True)
            self._thread.start()

    def leave(self) -> None:
        """Stop searching; values found so far stay stored. Waits for a search that is running. Idempotent."""
        self._end_thread()
        self._scanner.close()

    def finish(self) -> tuple[Mapping[str, Any], ...]:
        """Search the rest of the log; return FinalMetricDataList: each metric's last value, in order of definition.

        Empty if the search took too long or failed; the job's log then says so. Repeatable. Blocks.

        Raises:
            StoreUnavailable: the values found cannot be stored now.
        """
        if not self._definitions:
            return ()
        self._end_thread()
        try:
            self._collect()
        except MetricsUnavailable as error:
            backend_lines.say(self._ports, self._job, str(error))
            return ()
        finally:
            self._scanner.close()
        for name, regex in self._scanner.given_up:
            backend_lines.say(
                self._ports,
                self._job,
                f"the metric {name} was given up: to find it in the log took more than {metric_scan.START_S:g} s and"
                f" {metric_scan.LINE_S * 1000:g} ms a line. Simplify its Regex (no leading '.*', no nested"
                f" repetition). Given: {regex}",
            )
        last = {value.name: value for value in self._ports.store.last_metrics(self._job.name)}
        names = dict.fromkeys(definition["Name"] for definition in self._definitions)
        return tuple(_final(last[name]) for name in names if name in last)

    def _end_thread(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            try:
                self._collect()
            except StoreUnavailable:
                continue  # until the values can be stored again
            except MetricsUnavailable as error:
                self._hopeless = error
                return
            except Exception:  # noqa: BLE001 - an error here must not end the training
                if not self._ended.is_set():  # at shutdown the store may be closed already
                    _log.exception("Job %s: its metrics are not collected while it runs.", self._job.name)
                return

    def _collect(self) -> None:
        if self._hopeless is not None:
            raise self._hopeless
        store = self._ports.store
        for stream in store.log_streams(f"{self._job.name}/"):
            place = stream.scanned
            while place < stream.events:
                events = store.read_log(stream.name, place, _LOG_PAGE)
                if not events:
                    break
                place = events[-1].sequence + 1
                store.append_metrics(stream.name, self._scanner.search(events), place)


def _final(value: MetricValue) -> Mapping[str, Any]:
    moment = datetime.fromtimestamp(value.timestamp_ms / 1000, timezone.utc)
    return {"MetricName": value.name, "Value": value.value, "Timestamp": moment}
