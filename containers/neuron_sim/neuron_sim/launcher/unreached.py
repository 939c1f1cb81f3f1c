"""Hosts that pip could not reach, from its own log: its messages about an index name only a path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

_GIVEN_UP = re.compile(r"\bhost='([^']+)', port=\d+\): Max retries exceeded with url: (\S+)")
_ERROR = re.compile(r"ERROR: (\w+)")


def hosts(log: str) -> Mapping[str, Sequence[str]]:
    """The paths that pip asked for in vain, by host; none if it failed as requirements contradict each other.

    ``log``: what its option ``--log`` writes.
    """
    found: dict[str, list[str]] = {}
    if _ERROR.findall(log)[-1:] == ["ResolutionImpossible"]:
        return found
    for host, path in _GIVEN_UP.findall(log):
        found.setdefault(host, []).append(path)
    return found


def are_named(unreached: Mapping[str, Sequence[str]], lines: Iterable[str]) -> bool:
    """Whether a line of requirements.txt is the URL of such a file: then no version of another line helps."""
    urls = [line for line in lines if not line.startswith(("-", "#"))]
    pairs = ((host, path) for host, paths in unreached.items() for path in paths)
    return any(host in url and path in url for host, path in pairs for url in urls)


def advice(unreached: Iterable[str]) -> str:
    """What to do about these hosts, in one line."""
    return (
        f"Windtunnel: pip cannot connect to {' or '.join(unreached)}. Use a network or a proxy (HTTPS_PROXY) that "
        "leads there, without network isolation; or name the package, with an index that has it (PIP_EXTRA_INDEX_URL); "
        "or put its wheel beside requirements.txt and write ./NAME.whl there."
    )


def without_warnings(output: str) -> Iterator[str]:
    """The lines of pip's output that are no warnings: those of its retries leave a FailureReason no room."""
    return (line for line in output.split("\n") if not line.lstrip().startswith("WARNING: "))
