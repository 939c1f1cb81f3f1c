"""Regular expressions of a user's over a log, in a process of their own.

Run as a script (standard library only, nothing of ours is imported), with its limit of processor
seconds, at which the kernel ends it, also when the server is gone. In the server itself an
expression that takes too long would hold the interpreter's lock, and every request would wait.

    stdin   ``[[name, regex], ...]``; then, one JSON a line, lists of ``[timestamp_ms, message]``
    stdout  for each list, one JSON a line: ``[[name, timestamp_ms, value], ...]`` in order
"""

from __future__ import annotations

import json
import math
import re
import resource
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

Found = tuple[str, int, float]

_MOST_A_LINE = 100
"""Of one metric: a line of a megabyte may hold hundreds of thousands of numbers."""


def scan(
    definitions: Sequence[tuple[str, re.Pattern[str]]], events: Iterable[Sequence[object]]
) -> Iterator[Found]:
    """Each number that an expression's first group caught, the last hundred of a line; what is no number is
    passed over.

    So are infinities and NaN, which CloudWatch does not take. The states of a progress bar,
    which carriage returns divide, are looked at one by one.
    """
    for timestamp_ms, message in events:
        for line in str(message).split("\r"):
            for name, pattern in definitions:
                for match in deque(pattern.finditer(line), _MOST_A_LINE):
                    value = _number(match[1])
                    if value is not None and math.isfinite(value):
                        yield name, int(str(timestamp_ms)), value


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def main() -> None:
    """Answer each line until there are no more."""
    limit_s = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
    definitions = [(name, re.compile(regex)) for name, regex in json.loads(sys.stdin.readline())]
    for line in sys.stdin:
        sys.stdout.write(json.dumps(list(scan(definitions, json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
