"""The conditional headers of reads, copies and writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from windtunnel_local.api.errors import ApiError
from windtunnel_local.objects.records import Guard
from windtunnel_local.service.ground.ports import ObjectInfo

_SOURCE = "x-amz-copy-source-"
_NOT_HELD = "At least one of the pre-conditions you specified did not hold."
_UNSERVED = ("x-amz-if-match-last-modified-time", "x-amz-if-match-size")


def check_conditions(info: ObjectInfo, headers: Mapping[str, str]) -> bool:
    """Check RFC 9110's conditions of a read; returns whether to send the object (False: 304).

    Raises:
        ApiError: PreconditionFailed.
    """
    modified = info.modified.replace(microsecond=0)
    if_match, if_none_match = headers.get("if-match"), headers.get("if-none-match")
    unmodified, since = _date(headers, "if-unmodified-since"), _date(headers, "if-modified-since")
    if if_match and not _names(if_match, info.etag):
        raise _failed("If-Match")
    if not if_match and unmodified and modified > unmodified:
        raise _failed("If-Unmodified-Since")
    if if_none_match:
        return not _names(if_none_match, info.etag)
    return not (since and modified <= since)


def check_source(info: ObjectInfo, headers: Mapping[str, str]) -> None:
    """Check the conditions of a copy on its source.

    Raises:
        ApiError: PreconditionFailed.
    """
    conditions = {n.removeprefix(_SOURCE): v for n, v in headers.items() if n.startswith(_SOURCE)}
    if not check_conditions(info, conditions):
        raise _failed("If-None-Match" if "if-none-match" in conditions else "If-Modified-Since")


def guard(headers: Mapping[str, str]) -> Guard:
    """The condition of a write: ``If-None-Match: *``, or ``If-Match`` with an ETag or ``*``. Raises ``ApiError``."""
    for name in _UNSERVED:
        if name in headers:
            raise ApiError("NotImplemented", f"Windtunnel's S3 does not serve the condition {name}.", 501)
    absent, match = headers.get("if-none-match"), headers.get("if-match")
    if absent is not None and absent.strip() != "*":
        raise ApiError(
            "NotImplemented", "A write can ask for If-None-Match: * only; an ETag goes in If-Match.", 501
        )
    if absent is not None and match is not None:
        raise ApiError("InvalidRequest", "A write has If-Match or If-None-Match, not both.")
    return Guard(absent=absent is not None, etag=match.strip().strip('"') if match is not None else None)


def _failed(condition: str) -> ApiError:
    return ApiError("PreconditionFailed", _NOT_HELD, 412, {"Condition": condition})


def _names(header: str, etag: str) -> bool:
    tags = (tag.strip().removeprefix("W/").strip('"') for tag in header.split(","))
    return any(tag in ("*", etag) for tag in tags)


def _date(headers: Mapping[str, str], name: str) -> datetime | None:
    """The time in a header; None, which is no condition, if the header is missing or holds no date."""
    try:
        moment = parsedate_to_datetime(headers[name]) if name in headers else None
    except (ValueError, OverflowError):
        return None
    # HTTP's dates are in UTC, even if they name no zone.
    return moment.replace(tzinfo=timezone.utc) if moment is not None and moment.tzinfo is None else moment
