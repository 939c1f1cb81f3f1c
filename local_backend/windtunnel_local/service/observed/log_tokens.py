"""Page tokens of the logs' operations: opaque to clients, checked when they come back."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel_local.service.ground.errors import InvalidParameter

_DIGITS = 56
_TOKEN = re.compile(rf"(?P<direction>[fb])/(?P<sequence>[0-9]{{{_DIGITS}}})")
_LARGEST = 1 << 62


@dataclass(frozen=True)
class FilterPosition:
    """Where FilterLogEvents stands: streams that it is in the midst of, and the last one that it began.

    Streams are begun in order of the time of their first event, and then of their names.
    """

    begun: tuple[int, str]
    within: Mapping[str, int]
    """The next sequence of each."""

    def encode(self) -> str:
        """As a token."""
        return encode([list(self.begun), dict(self.within)])


def event_token(forward: bool, sequence: int) -> str:
    """GetLogEvents' token, in the form that AWS's have."""
    return f"{'f' if forward else 'b'}/{sequence:0{_DIGITS}d}"


def event_position(token: str) -> tuple[bool, int]:
    """Whether a token reads forward, and the sequence at which it stands; raises ``InvalidParameter``."""
    found = _TOKEN.fullmatch(token)
    if found is None or int(found["sequence"]) >= _LARGEST:
        raise _bad_token()
    return found["direction"] == "f", int(found["sequence"])


def filter_position(token: str) -> FilterPosition:
    """FilterLogEvents' position; raises ``InvalidParameter``."""
    match decode(token):
        case [[int() as first_ms, str() as name], dict() as within] if abs(first_ms) < _LARGEST and all(
            type(sequence) is int and 0 <= sequence < _LARGEST for sequence in within.values()
        ):
            return FilterPosition((first_ms, _stored(name)), {_stored(key): at for key, at in within.items()})
    raise _bad_token()


def stream_position(token: str, order_by: str, descending: bool) -> tuple[int, str]:
    """DescribeLogStreams' last stream in an order: its time and name; raises ``InvalidParameter``."""
    match decode(token):
        case [given_order, given_descending, int() as value, str() as name] if (
            given_order == order_by and given_descending is descending and abs(value) < _LARGEST
        ):
            return value, _stored(name)
    raise _bad_token()


def encode(data: Sequence[Any]) -> str:
    """Any position as text."""
    return base64.urlsafe_b64encode(json.dumps(data, separators=(",", ":")).encode()).decode()


def decode(token: str) -> Any:
    """What was encoded; raises ``InvalidParameter``."""
    try:
        return json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise _bad_token() from None


def _stored(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _bad_token() from None
    return name


def _bad_token() -> InvalidParameter:
    return InvalidParameter("The specified nextToken is invalid.")
