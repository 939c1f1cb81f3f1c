"""The Range header of a read: which bytes of an object to send."""

from __future__ import annotations

import re

from windtunnel_local.api.errors import ApiError

_DIGITS = re.compile("[0-9]+")


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """First byte and length of a ``Range``; None: the whole object, as the header is missing or unusable.

    Raises:
        ApiError: InvalidRange: no byte of the object lies in the range.
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
