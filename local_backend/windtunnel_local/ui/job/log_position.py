"""A reader's position in the log of a job: a sequence number in each stream, written as text for a link.

    algo-1-1760000000:1200,algo-2-1760000001:1187

Streams are sorted by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from windtunnel_local.service.ground.errors import ValidationFailed

Position = Mapping[str, int]
"""The sequence number of the next line, by stream. Streams' names are without the job's."""

START: Position = MappingProxyType({})
"""The start of the log: a stream that a position does not name is read from its first line."""

_PLACE = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,99}):([0-9]{1,15})")
_MOST_CHARACTERS = 20_000


def written(position: Position) -> str:
    """The position as text: letters, digits and ``-.:,``."""
    return ",".join(f"{stream}:{position[stream]}" for stream in sorted(position))


def read(text: str) -> Position:
    """A position from a link's text. Raises ``ValidationFailed``, which says what is wrong."""
    if not text:
        return START
    if len(text) > _MOST_CHARACTERS:
        raise ValidationFailed(
            f"A place in the log has {_MOST_CHARACTERS:,} characters at most, given: {len(text):,}."
        )
    found = {}
    for part in text.split(","):
        place = _PLACE.fullmatch(part)
        if place is None:
            raise ValidationFailed(
                f"{part[:100]!r} is no place in a log: it looks like algo-1-1760000000:1200."
            )
        found[place[1]] = int(place[2])
    return found


def host_of(stream: str) -> str:
    """The host in a stream's name: ``algo-1`` of ``algo-1-1760000000``."""
    return stream.rpartition("-")[0] or stream


def hosts_of(streams: Iterable[str]) -> list[str]:
    """The hosts of these streams: algo-2 before algo-10."""
    return sorted({host_of(stream) for stream in streams}, key=lambda host: (len(host), host))
