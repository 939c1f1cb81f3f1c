"""The engine's way to write times."""

from __future__ import annotations

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.(\d+)")


def engine_time(text: str | None) -> datetime | None:
    """The engine's time in UTC; None for "never", which it writes as the year 1.

    Nanoseconds are cut to microseconds. Containers' times are in UTC, networks' in the engine's zone.

    Raises:
        ValueError: it is no time.
    """
    if not text or text.startswith("0001-"):
        return None
    # Python 3.10 reads neither nanoseconds nor "Z".
    microseconds = _FRACTION.sub(lambda found: f".{found[1][:6]:0<6}", text.replace("Z", "+00:00"))
    return datetime.fromisoformat(microseconds).astimezone(timezone.utc)
