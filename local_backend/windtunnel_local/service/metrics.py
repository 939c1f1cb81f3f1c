"""MetricDefinitions over a job's log: FinalMetricDataList."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.service.ports import LogEvent


def final_metrics(
    definitions: Sequence[Mapping[str, str]], events: Iterable[LogEvent]
) -> tuple[Mapping[str, Any], ...]:
    """The last value of each metric that was ever printed, in the order of the definitions.

    The first group of the regular expression is the value; what is no number is passed over.
    """
    patterns = [(definition["Name"], re.compile(definition["Regex"])) for definition in definitions]
    last: dict[str, Mapping[str, Any]] = {}
    for event in events:
        for name, pattern in patterns:
            for found in pattern.finditer(event.message):
                value = _number(found[1])
                if value is not None:
                    moment = datetime.fromtimestamp(event.timestamp_ms / 1000, timezone.utc)
                    last[name] = {"MetricName": name, "Value": value, "Timestamp": moment}
    return tuple(last[name] for name in dict.fromkeys(name for name, _ in patterns) if name in last)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
