"""Times as microseconds since the Unix epoch, and back, without rounding."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def microseconds(moment: datetime) -> int:
    """The time in microseconds since the Unix epoch."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The time (UTC) that is so many microseconds after the Unix epoch."""
    return _EPOCH + timedelta(microseconds=us)
