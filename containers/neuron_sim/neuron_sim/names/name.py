"""A name that Trainium scripts use, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, int]

FIRST: Version = (1, 13)
"""The first version whose names are known. AWS's older images (1.11) are treated as this version."""
LATEST: Version = (2, 9)


@dataclass(frozen=True)
class Name:
    """A name. ``since`` and ``until`` are framework versions, both included; ``until`` None: it still exists.

    ``refused`` says what to do instead; empty for a name that works.
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
        return not self.is_newer_than(version) and max(version, FIRST) <= (self.until or LATEST)

    def is_newer_than(self, version: Version) -> bool:
        """Whether the name came after a framework version."""
        return (self.since or FIRST) > max(version, FIRST)


def group(
    module: str,
    names: str,
    since: Version | None = FIRST,
    until: Version | None = None,
    refused: str = "",
    note: str = "",
) -> list[Name]:
    """One `Name` for each of ``names`` (separated by white space) of a module; they have all else in common."""
    return [Name(module, name, since, until, refused, note) for name in names.split()]
