"""Regular expressions of a user's over a log, in a process of their own.

Run as a script (standard library only, nothing of ours is imported), with its limit of processor
seconds, at which the kernel ends it, also when the server is gone. In the server itself an
expression that takes too long would hold the interpreter's lock, and every request would wait.

    stdin   ``[[name, regex], ...]``, then ``[timestamp_ms, message]`` for each event, one JSON a line
    stdout  ``{name: [value, timestamp_ms]}``: the last value of each
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterable, Sequence

Found = dict[str, tuple[float, int]]


def scan(definitions: Sequence[Sequence[str]], events: Iterable[Sequence[object]]) -> Found:
    """The last number that each expression's first group caught; what is no number is passed over.

    The states of a progress bar, which carriage returns divide, are looked at one by one.
    """
    patterns = [(name, re.compile(regex)) for name, regex in definitions]
    last: Found = {}
    for timestamp_ms, message in events:
        for line in str(message).split("\r"):
            for name, pattern in patterns:
                for match in pattern.finditer(line):
                    value = _number(match[1])
                    if value is not None:
                        last[name] = value, int(str(timestamp_ms))
    return last


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def main() -> None:
    """Read all, then answer."""
    limit_s = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
    definitions = json.loads(sys.stdin.readline())
    found = scan(definitions, map(json.loads, sys.stdin))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
