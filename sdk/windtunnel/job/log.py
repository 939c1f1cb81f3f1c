"""Follow a job: give each of its log lines exactly once, and print its status as it changes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, TextIO

from windtunnel.errors import ConfigurationError
from windtunnel.job.environment_fold import EnvironmentFold
from windtunnel.request.instance_groups import host_count
from windtunnel.session.log_streams import LogStreams
from windtunnel.session.training_service import TrainingService

_LOG_WORDS = ("All", "None", "Training", "Rules")


class LogFollower:
    """Reads the log streams of all hosts of one job, and remembers its position in each.

    Every line is given exactly once: GetLogEvents' forward token continues right after the last line read,
    even if the backend was restarted in between.
    """

    def __init__(
        self, service: TrainingService, job: str, description: dict[str, Any], fold: str | None = None
    ) -> None:
        """``fold``: text of the one line that stands for the toolkit's environment; None: show the environment."""
        self._hosts = host_count(description["ResourceConfig"])
        # A job that starts again, after an interruption or a fault, has a stream for each attempt.
        starts_again = bool(description.get("EnableManagedSpotTraining") or description.get("RetryStrategy"))
        found: set[str] = set()

        def streams() -> set[str]:
            if starts_again or len(found) < self._hosts:
                found.update(service.log_streams(job))
            return found

        self._log = LogStreams(streams, service.read_log)
        self._fold = fold
        self._folds: dict[str, EnvironmentFold] = {}

    def read(self) -> Iterator[str]:
        """All lines that have come since the last call, host by host; does not wait for more."""
        for stream, line in self._log.lines():
            fold = self._folds.setdefault(stream, EnvironmentFold(self._fold)) if self._fold else None
            for shown in (line,) if fold is None else fold.feed(line):
                yield self._prefix(stream) + shown

    def rest(self) -> Iterator[str]:
        """Lines that `read` still holds back because they might have to be folded. Call at the end of the log."""
        for stream, fold in self._folds.items():
            for line in fold.rest():
                yield self._prefix(stream) + line

    def _prefix(self, stream: str) -> str:
        return before_line(stream) if self._hosts > 1 else ""


class StatusPrinter:
    """Prints each secondary status, and each new message of it, once, in SDK v2's form."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._seen: dict[int, tuple[str, str]] = {}

    def show(self, description: dict[str, Any]) -> None:
        """Print what is new in ``SecondaryStatusTransitions``."""
        new = False
        for index, transition in enumerate(description.get("SecondaryStatusTransitions", [])):
            status, message = transition["Status"], transition.get("StatusMessage", "")
            known = self._seen.get(index)
            if known == (status, message):
                continue
            # A status that was shown before has a new message, which has just come.
            when = transition["StartTime"] if known is None else description["LastModifiedTime"]
            self._seen[index] = (status, message)
            self._out.write(printable(f"{_utc(when)} {status} - {message}\n", self._out))
            new = True
        if new:
            self._out.flush()


def printable(text: str, out: TextIO) -> str:
    """The text with ``?`` for characters that the stream's encoding lacks: a script may print anything."""
    encoding = out.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def wants_logs(logs: bool | str | list[str]) -> bool:
    """Whether SDK v2's ``logs`` asks for the log: True, False, "All", "None", "Training", "Rules", or a list of these.

    Raises:
        ConfigurationError: another value.
    """
    if isinstance(logs, list):
        return True in [wants_logs(one) for one in logs]
    if not isinstance(logs, bool) and logs not in _LOG_WORDS:
        valid = f"True, False, {str(_LOG_WORDS)[1:-1]}, or a list of these"
        raise ConfigurationError(f"logs={logs!r}: {valid} is needed.")
    return logs is True or logs in ("All", "Training")


def print_lines(lines: Iterator[str], out: TextIO) -> None:
    """Print the lines, as far as the stream's encoding allows."""
    printed = False
    for line in lines:
        out.write(f"{printable(line, out)}\n")
        printed = True
    if printed:
        out.flush()


def before_line(stream: str) -> str:
    """``[algo-1] ``: the prefix of a stream's lines in a log of several. `failure.OF_A_HOST` recognises it."""
    return f"[{host_of(stream)}] "


def host_of(stream: str) -> str:
    """``job/algo-1-1700000000`` -> ``algo-1``."""
    return "-".join(stream.rpartition("/")[2].split("-")[:2])


def _utc(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
