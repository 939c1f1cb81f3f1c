"""A name that Trainium scripts use, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, int]

FIRST: Version = (1, 13)
"""Trainium's first framework version; what is older counts as this old."""
LATEST: Version = (2, 9)


@dataclass(frozen=True)
class Name:
    """``since`` and ``until`` are framework versions, both included; ``until`` None: still there.

    ``refused`` says what to do instead; empty for what works.
    """

    module: str
    name: str
    since: Version | None = None
    until: Version | None = None
    refused: str = ""
    note: str = ""

    @property
    def supported(self) -> bool:
        """Whether it works here, in the versions that have it."""
        return not self.refused

    def in_version(self, version: Version) -> bool:
        """Whether a framework version has the name."""
        return (self.since or FIRST) <= version <= (self.until or LATEST)


def group(
    module: str,
    names: str,
    since: Version | None = FIRST,
    until: Version | None = None,
    refused: str = "",
    note: str = "",
) -> list[Name]:
    """Names of one module, separated by white space, with all else in common."""
    return [Name(module, name, since, until, refused, note) for name in names.split()]
