"""Regular expressions of a user's over a log, in a process of their own.

Run as a script (standard library only, nothing of ours is imported), with its limit of processor
seconds, at which the kernel ends it, also when the server is gone. In the server itself an
expression that takes too long would hold the interpreter's lock, and every request would wait.

Each expression has processor time of its own, more with each line. One that has used it up is given up,
in the middle of a line if need be: `re` looks for signals while it matches. The others go on.

    stdin   ``[[name, regex], ...]``; then, one JSON a line, lists of ``[timestamp_ms, message]``
    stdout  for each list, one JSON a line: ``[found, given_up]``, of which ``found`` is
            ``[[name, timestamp_ms, value], ...]`` in order, and ``given_up`` ``[[name, regex], ...]`` of now
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
"""Processor seconds that an expression may take, ..."""
LINE_S = 0.001
"""and for each line besides. Usual ones take microseconds."""

_MOST_A_LINE = 100
"""Of one metric: a line of a megabyte may hold hundreds of thousands of numbers."""


class TooSlow(Exception):
    """An expression has used its time up."""


class Expression:
    """One expression, and the processor seconds that it has left."""

    def __init__(self, name: str, regex: str) -> None:
        """Raises ``re.error``."""
        self.name = name
        self.regex = regex
        self._pattern = re.compile(regex)
        self._left_s = START_S

    def values(self, line: str) -> Sequence[float]:
        """Each number that the first group caught, the last hundred of a line; what is no number is passed over.

        So are infinities and NaN, which CloudWatch does not take.

        Raises:
            TooSlow: so.
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
    """What is found; who takes too long moves from ``expressions`` to ``given_up``.

    The states of a progress bar, which carriage returns divide, are looked at one by one.
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
    """Answer each line until there are no more."""
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
