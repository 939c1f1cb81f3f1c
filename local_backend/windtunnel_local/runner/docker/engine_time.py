"""The engine's way to write times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_TIME = re.compile(
    r"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>\d\d))"
)


def engine_time(text: str | None) -> datetime | None:
    """The engine's time in UTC; None for "never", which it writes as the year 1.

    Nanoseconds are cut to microseconds. Containers' times are in UTC, networks' in the engine's zone.

    Raises:
        ValueError: it is no time.
    """
    if not text or text.startswith("0001-"):
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time of the Docker engine")
    moment = datetime.strptime(match["seconds"], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    moment = moment.replace(microsecond=int((match["fraction"] or "0")[:6].ljust(6, "0")))
    if match["sign"]:
        offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"]))
        moment += offset if match["sign"] == "-" else -offset
    return moment
