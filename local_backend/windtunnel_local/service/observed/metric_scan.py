"""Searches a log with a user's regular expressions, in a process of its own.

Run as a script (it imports only the standard library). Its argument is a limit of processor seconds;
the kernel ends the process at this limit, even if the server is gone. In the server itself, a slow
expression would hold Python's global interpreter lock, and every request would wait.

Each expression has its own processor time, which grows with each line. If it is used up, the
expression is given up, even within a line, as `re` checks for signals while it matches. The others go on.

    stdin   first ``[[name, regex], ...]``; then lists of ``[timestamp_ms, message]``; each is one line of JSON
    stdout  for each list one line of JSON: ``[found, given_up]``, with ``found`` as
            ``[[name, timestamp_ms, value], ...]`` in order, and ``given_up`` as ``[[name, regex], ...]``, new ones only
"""

from __future__ import annotations

import json
import math
import re
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

Found = tuple[str, int, float]

START_S = 2.0
"""Processor seconds that each expression has at the start."""
LINE_S = 0.001
"""Processor seconds that each line adds. Usual expressions take microseconds."""

_MOST_A_LINE = 100
"""Most values of one metric from a line: a line of a megabyte may hold hundreds of thousands of numbers."""


class TooSlow(Exception):
    """An expression has used up its processor time."""


class Expression:
    """One expression, and the processor seconds that it has left."""

    def __init__(self, name: str, regex: str) -> None:
        """Compile the expression; raises ``re.error``."""
        self.name = name
        self.regex = regex
        self._pattern = re.compile(regex)
        self._left_s = START_S

    def values(self, line: str) -> Sequence[float]:
        """The numbers that the first group captured, from the last hundred matches of a line.

        Texts that are not numbers are left out, also infinities and NaN, which CloudWatch does not take.

        Raises:
            TooSlow: the expression's processor time is used up.
        """
        begun = time.process_time()
        self._left_s += LINE_S
        try:
            signal.setitimer(signal.ITIMER_PROF, self._left_s)
            caught = [match[1] for match in deque(self._pattern.finditer(line), _MOST_A_LINE)]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self._left_s -= time.process_time() - begun
        if self._left_s <= 0:
            raise TooSlow
        return [value for value in map(_number, caught) if value is not None and math.isfinite(value)]


def scan(
    expressions: list[Expression], events: Iterable[Sequence[object]], given_up: list[Expression]
) -> Iterator[Found]:
    """The values found. An expression that takes too long is moved from ``expressions`` to ``given_up``.

    The states of a progress bar, separated by carriage returns, are searched like lines.
    """
    for timestamp_ms, message in events:
        for line in str(message).split("\r"):
            for expression in list(expressions):
                try:
                    for value in expression.values(line):
                        yield expression.name, int(str(timestamp_ms)), value
                except TooSlow:
                    expressions.remove(expression)
                    given_up.append(expression)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def main() -> None:
    """Answer each line of stdin until its end."""
    limit_s = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
    signal.signal(signal.SIGPROF, _interrupt)
    expressions = [Expression(name, regex) for name, regex in json.loads(sys.stdin.readline())]
    for line in sys.stdin:
        given_up: list[Expression] = []
        found = list(scan(expressions, json.loads(line), given_up))
        sys.stdout.write(json.dumps([found, [[lost.name, lost.regex] for lost in given_up]]) + "\n")
        sys.stdout.flush()


def _interrupt(_number: int, _frame: object) -> None:
    raise TooSlow


if __name__ == "__main__":
    main()
