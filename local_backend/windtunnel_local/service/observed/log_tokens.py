"""Page tokens of CloudWatch Logs' operations: opaque to clients, and checked when they come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel_local.service.ground import page_token
from windtunnel_local.service.ground.errors import InvalidParameter

_DIGITS = 56
_TOKEN = re.compile(rf"(?P<direction>[fb])/(?P<sequence>[0-9]{{{_DIGITS}}})")
_LARGEST = 1 << 62


@dataclass(frozen=True)
class FilterPosition:
    """The position of FilterLogEvents: the streams that it is reading, and the last stream that it opened.

    Streams are opened in order of the time of their first event, then of their names.
    """

    begun: tuple[int, str]
    within: Mapping[str, int]
    """By stream that is being read: the sequence number of the next event."""

    def encode(self) -> str:
        """The position as a token."""
        return page_token.encode([list(self.begun), dict(self.within)])


def event_token(forward: bool, sequence: int) -> str:
    """A token of GetLogEvents, in AWS's form."""
    return f"{'f' if forward else 'b'}/{sequence:0{_DIGITS}d}"


def event_position(token: str) -> tuple[bool, int]:
    """Parse a token of GetLogEvents: whether it reads forward, and from which sequence. Raises ``InvalidParameter``."""
    found = _TOKEN.fullmatch(token)
    if found is None or int(found["sequence"]) >= _LARGEST:
        raise _bad_token()
    return found["direction"] == "f", int(found["sequence"])


def filter_position(token: str) -> FilterPosition:
    """Parse a token of FilterLogEvents; raises ``InvalidParameter``."""
    match page_token.decode(token, _bad_token()):
        case [[int() as first_ms, str() as name], dict() as within] if abs(first_ms) < _LARGEST and all(
            type(sequence) is int and 0 <= sequence < _LARGEST for sequence in within.values()
        ):
            return FilterPosition((first_ms, _stored(name)), {_stored(key): at for key, at in within.items()})
    raise _bad_token()


def stream_position(token: str, order_by: str, descending: bool) -> tuple[int, str]:
    """Parse a token of DescribeLogStreams: time and name of the page's last stream. Raises ``InvalidParameter``."""
    match page_token.decode(token, _bad_token()):
        case [given_order, given_descending, int() as value, str() as name] if (
            given_order == order_by and given_descending is descending and abs(value) < _LARGEST
        ):
            return value, _stored(name)
    raise _bad_token()


def _stored(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _bad_token() from None
    return name


def _bad_token() -> InvalidParameter:
    return InvalidParameter("The specified nextToken is invalid.")
