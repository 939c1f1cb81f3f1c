"""Jobs as JSON text, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.service.ground.job import Job, Lifecycle, SpotTerms, Transition, WarmPool

_COLUMNS = frozenset({"name", "arn", "request", "lifecycle"})
"""Members of a job that are stored beside the record, and the lifecycle, whose own members are in it."""


def encode_record(job: Job) -> str:
    """All of a job except its request, as JSON text."""
    members = {name: value for name, value in vars(job).items() if name not in _COLUMNS}
    return json.dumps({**vars(job.lifecycle), **members}, default=_plain)


def decode_job(name: str, arn: str, request: str, record: str) -> Job:
    """The job of a row; ``request`` and ``record`` are JSON text."""
    data: dict[str, Any] = json.loads(record)
    lifecycle = Lifecycle(
        status=data["status"],
        secondary=data["secondary"],
        transitions=tuple(
            Transition(status, _time(start), read_time(end), message)
            for status, start, end, message in data["transitions"]
        ),
        created=_time(data["created"]),
        modified=_time(data["modified"]),
        training_start=read_time(data["training_start"]),
        training_end=read_time(data["training_end"]),
        failure_reason=data["failure_reason"],
        stop_cause=data["stop_cause"],
    )
    metrics: tuple[Mapping[str, Any], ...] = tuple(
        {**metric, "Timestamp": _time(metric["Timestamp"])} for metric in data["final_metrics"]
    )
    spot, pool = data["spot"], data["warm_pool"]
    return Job(
        name,
        arn,
        json.loads(request),
        lifecycle,
        data["model_artifact"],
        metrics,
        slot=data["slot"],
        spot=spot and SpotTerms(**spot),
        updates=data["updates"],
        warm_pool=pool and WarmPool(**pool),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    if isinstance(value, Transition):
        return [value.status, value.start, value.end, value.message]
    return dict(value) if isinstance(value, Mapping) else asdict(value)


def read_time(text: str | None) -> datetime | None:
    """Read a time that `encode_record` has written (ISO 8601)."""
    return None if text is None else _time(text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
