"""Following a job: its log lines, each exactly once, and its status as it changes."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, TextIO

from windtunnel.errors import ConfigurationError
from windtunnel.job.environment_fold import EnvironmentFold
from windtunnel.request.instance_groups import host_count
from windtunnel.session.training_service import TrainingService

_LOG_WORDS = ("All", "None", "Training", "Rules")


class LogFollower:
    """Reads the streams of all hosts of one job; remembers where it stands in each.

    Every line is given exactly once: GetLogEvents' forward token continues right behind the last line read,
    also when the backend was restarted in between.
    """

    def __init__(
        self, service: TrainingService, job: str, description: dict[str, Any], fold: str | None = None
    ) -> None:
        """``fold``: show the toolkit's environment as one line, which says this; None: show all there is."""
        self._service = service
        self._job = job
        self._hosts = host_count(description["ResourceConfig"])
        # A job that starts again, after an interruption or a fault, has a stream an attempt.
        self._starts_again = bool(
            description.get("EnableManagedSpotTraining") or description.get("RetryStrategy")
        )
        self._tokens: dict[str, str | None] = {}
        self._fold = fold
        self._folds: dict[str, EnvironmentFold] = {}

    def read(self) -> Iterator[str]:
        """All lines that have come since the last call, host by host; does not wait for more."""
        if self._starts_again or len(self._tokens) < self._hosts:
            for stream in self._service.log_streams(self._job):
                self._tokens.setdefault(stream, None)
        for stream in sorted(self._tokens):
            prefix = self._prefix(stream)
            fold = self._folds.setdefault(stream, EnvironmentFold(self._fold)) if self._fold else None
            while True:
                token = self._tokens[stream]
                lines, following = self._service.read_log(stream, token)
                # The token moves before a line is handed out: whoever stops in the middle of a page
                # would otherwise see its first lines again.
                self._tokens[stream] = following
                for line in lines:
                    text = line.text.rstrip("\n")
                    for shown in (text,) if fold is None else fold.feed(text):
                        yield prefix + shown
                if following == token:  # an empty page may lead on
                    break

    def rest(self) -> Iterator[str]:
        """What `read` has held back, to see whether it is to be folded; for when nothing more comes."""
        for stream, fold in self._folds.items():
            for line in fold.rest():
                yield self._prefix(stream) + line

    def _prefix(self, stream: str) -> str:
        return before_line(stream) if self._hosts > 1 else ""


class StatusPrinter:
    """Prints each secondary status and each new message of it, once, as SDK v2 words them."""

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
            # A new message in a status that is already shown has come just now.
            when = transition["StartTime"] if known is None else description["LastModifiedTime"]
            self._seen[index] = (status, message)
            self._out.write(printable(f"{_utc(when)} {status} - {message}\n", self._out))
            new = True
        if new:
            self._out.flush()


def printable(text: str, out: TextIO) -> str:
    """The text with ``?`` for what the stream's encoding lacks: a script may print anything."""
    encoding = out.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def wants_logs(logs: bool | str | list[str]) -> bool:
    """SDK v2's ``logs``: True, False, "All", "None", "Training", "Rules", or a list of those.

    Raises:
        ConfigurationError: it is none of these.
    """
    if isinstance(logs, list):
        return True in [wants_logs(one) for one in logs]
    if not isinstance(logs, bool) and logs not in _LOG_WORDS:
        valid = f"True, False, {str(_LOG_WORDS)[1:-1]}, or a list of these"
        raise ConfigurationError(f"logs={logs!r}: {valid} is needed.")
    return logs is True or logs in ("All", "Training")


def last_of(count: int | None, lines: Iterator[str]) -> Iterable[str]:
    """The last lines; None: all of them, as they come."""
    return lines if count is None else deque(lines, maxlen=min(count, sys.maxsize))


def print_lines(lines: Iterator[str], out: TextIO) -> None:
    """Print them as the stream's encoding allows."""
    printed = False
    for line in lines:
        out.write(f"{printable(line, out)}\n")
        printed = True
    if printed:
        out.flush()


def before_line(stream: str) -> str:
    """``[algo-1] ``, before each line of a stream where a log has several. `failure.OF_A_HOST` finds it again."""
    return f"[{host_of(stream)}] "


def host_of(stream: str) -> str:
    """``job/algo-1-1700000000`` -> ``algo-1``."""
    return "-".join(stream.rpartition("/")[2].split("-")[:2])


def _utc(when: datetime) -> str:
    return when.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
