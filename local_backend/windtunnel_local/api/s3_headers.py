"""Headers of S3: what is kept with an object, ranges, conditions, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime, parsedate_to_datetime

from windtunnel_local.api.body import CHECKSUM_HEADER
from windtunnel_local.api.errors import ApiError
from windtunnel_local.service.ports import ObjectInfo

_KEPT = frozenset(
    {
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "expires",
        "x-amz-server-side-encryption",
        "x-amz-server-side-encryption-aws-kms-key-id",
        "x-amz-server-side-encryption-bucket-key-enabled",
    }
)
_SOURCE = "x-amz-copy-source-"
_NOT_HELD = "At least one of the pre-conditions you specified did not hold."
_DIGITS = re.compile("[0-9]+")
_DEFAULT_TYPE = "binary/octet-stream"
# Accepting these without doing what they say would be a lie about the data's safety or its content.
_REFUSED = (
    "x-amz-object-lock-",
    "x-amz-server-side-encryption-customer-",
    "x-amz-tagging",
    "x-amz-website-redirect-location",
    "x-amz-write-offset-bytes",
    "x-amz-copy-source-server-side-encryption-customer-",
)
_OVERRIDES = {
    "ResponseCacheControl": "cache-control",
    "ResponseContentDisposition": "content-disposition",
    "ResponseContentEncoding": "content-encoding",
    "ResponseContentLanguage": "content-language",
    "ResponseContentType": "content-type",
    "ResponseExpires": "expires",
}


def refuse_unserved(headers: Mapping[str, str]) -> None:
    """Raise ``NotImplemented`` for a header that asks for what is not simulated."""
    for name in headers:
        if name.startswith(_REFUSED):
            raise ApiError("NotImplemented", f"Windtunnel's S3 does not serve the header {name}.", 501)


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a write that come back with every read."""
    metadata = {n: v for n, v in headers.items() if n in _KEPT or n.startswith("x-amz-meta-")}
    metadata.setdefault("content-type", _DEFAULT_TYPE)
    if "content-encoding" in metadata:
        codings = [c.strip() for c in metadata["content-encoding"].split(",")]
        metadata["content-encoding"] = ",".join(c for c in codings if c.lower() != "aws-chunked")
        if not metadata["content-encoding"]:
            del metadata["content-encoding"]
    return metadata


def encryption(metadata: Mapping[str, str]) -> dict[str, str]:
    """The encryption headers, which a write's answer repeats."""
    return {n: v for n, v in metadata.items() if n.startswith("x-amz-server-side-encryption")}


def described(info: ObjectInfo, params: Mapping[str, object], *, whole: bool) -> dict[str, str]:
    """The headers of a read. Checksums only of the whole object, and when the client asks."""
    headers = {"content-type": _DEFAULT_TYPE}
    with_checksums = whole and params.get("ChecksumMode") == "ENABLED"
    for name, value in info.metadata.items():
        if not name.startswith(CHECKSUM_HEADER) or with_checksums:
            headers[name] = value
    for param, name in _OVERRIDES.items():
        if param in params:
            headers[name] = str(params[param]).replace("\r", "").replace("\n", "")
    headers["etag"] = f'"{info.etag}"'
    headers["last-modified"] = format_datetime(info.modified, usegmt=True)
    headers["accept-ranges"] = "bytes"
    return headers


def check_conditions(info: ObjectInfo, headers: Mapping[str, str]) -> bool:
    """RFC 9110's conditions of a read; returns whether to send it (False: 304).

    Raises:
        ApiError: PreconditionFailed.
    """
    modified = info.modified.replace(microsecond=0)
    if_match, if_none_match = headers.get("if-match"), headers.get("if-none-match")
    unmodified, since = _date(headers, "if-unmodified-since"), _date(headers, "if-modified-since")
    failed = not _names(if_match, info.etag) if if_match else bool(unmodified and modified > unmodified)
    if failed:
        raise ApiError("PreconditionFailed", _NOT_HELD, 412)
    if if_none_match:
        return not _names(if_none_match, info.etag)
    return not (since and modified <= since)


def check_source(info: ObjectInfo, headers: Mapping[str, str]) -> None:
    """The conditions of a copy on its source.

    Raises:
        ApiError: PreconditionFailed.
    """
    conditions = {n.removeprefix(_SOURCE): v for n, v in headers.items() if n.startswith(_SOURCE)}
    if not check_conditions(info, conditions):
        raise ApiError("PreconditionFailed", _NOT_HELD, 412)


def if_absent(headers: Mapping[str, str]) -> bool:
    """Whether a write must not replace anything: ``If-None-Match: *``, the one condition of writes served."""
    for name in ("if-match", "if-none-match", "x-amz-if-match-last-modified-time", "x-amz-if-match-size"):
        if name in headers and (name, headers[name].strip()) != ("if-none-match", "*"):
            raise ApiError(
                "NotImplemented", f"Of conditional writes only 'If-None-Match: *' is served, not {name}.", 501
            )
    return "if-none-match" in headers


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and length of a ``Range``; None: the whole object (no, or an unusable header).

    Raises:
        ApiError: InvalidRange: nothing of the object lies in it.
    """
    unit, _, spec = (header or "").partition("=")
    first, dash, last = spec.strip().partition("-")
    if unit.strip() != "bytes" or not (
        dash and _DIGITS.fullmatch(first + last) and max(len(first), len(last)) < 19
    ):
        return None  # also several ranges: S3 sends the whole object then
    if first:
        start, end = int(first), min(int(last), size - 1) if last else size - 1
        if last and int(last) < start:
            return None
    else:
        start, end = max(size - int(last), 0), size - 1
    if start > end:
        details = {"RangeRequested": header or "", "ActualObjectSize": str(size)}
        raise ApiError("InvalidRange", "The requested range is not satisfiable", 416, details)
    return start, end - start + 1


def _names(header: str, etag: str) -> bool:
    tags = (tag.strip().removeprefix("W/").strip('"') for tag in header.split(","))
    return any(tag in ("*", etag) for tag in tags)


def _date(headers: Mapping[str, str], name: str) -> datetime | None:
    try:
        return parsedate_to_datetime(headers[name]) if name in headers else None
    except ValueError:
        return None
