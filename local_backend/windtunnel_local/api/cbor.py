"""Smithy's RPC v2 CBOR, the protocol that new versions of botocore use for CloudWatch.

The protocol's rules that matter here: timestamps are tag 1 with Unix seconds, blobs are byte
strings, and no other tag has a meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.api.errors import ApiError
from windtunnel_local.api.shapes import Writers
from windtunnel_local.api.validate import accepted

CBOR_TYPE = "application/cbor"
_MAX_DEPTH = 64
_SCALARS = (str, int, float, bool, bytes, type(None))


def decoded(shape: Any, body: bytes, code: str = "ValidationException") -> dict[str, Any]:
    """The validated input of an operation from its CBOR body.

    Raises:
        ApiError: SerializationException (the body is not CBOR), or ``code`` (the model refuses it).
    """
    import cbor2  # here, because the server's start need not wait for it: CloudWatch is rarely used

    try:
        document = cbor2.loads(body) if body else {}
    except Exception as error:  # the decoder raises errors of many types
        raise ApiError("SerializationException", f"The body is not valid CBOR: {error}") from error
    return accepted(shape, _checked(document, 0), code)


def encoded(shape: Any, value: Mapping[str, Any]) -> bytes:
    """An operation's output as CBOR; absent members left out.

    Raises:
        TypeError: the value has a member that the shape does not know, or of another type.
    """
    return dumped({} if shape is None else _WRITERS.of(shape)(value))


def dumped(document: Mapping[str, Any]) -> bytes:
    """A document of plain values and timezone-aware datetimes, as CBOR."""
    import cbor2

    return cbor2.dumps(document, datetime_as_timestamp=True, timezone=timezone.utc)


def _moment(value: datetime) -> datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


_WRITERS = Writers(_moment)


def _checked(value: Any, depth: int) -> Any:
    """The document, with times as Unix seconds. Raises ``ApiError`` for types that the protocol does not have."""
    if depth > _MAX_DEPTH:
        raise ApiError("SerializationException", f"The body nests deeper than {_MAX_DEPTH} levels.")
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list):
        return [_checked(item, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _checked(item, depth + 1) for name, item in value.items()}
    raise ApiError(
        "SerializationException", f"The body holds a {type(value).__name__}, which RPC v2 CBOR does not have."
    )
