"""A job as JSON text and back; page tokens."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from windtunnel_local.service.errors import ValidationFailed
from windtunnel_local.service.model import Job, Lifecycle, Transition

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def microseconds(moment: datetime) -> int:
    """Unix microseconds, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def encode_record(job: Job) -> str:
    """All of a job but its request."""
    lifecycle = job.lifecycle
    return json.dumps(
        {
            "status": lifecycle.status,
            "secondary": lifecycle.secondary,
            "transitions": [
                [t.status, _write_time(t.start), _write_time(t.end), t.message] for t in lifecycle.transitions
            ],
            "created": _write_time(lifecycle.created),
            "modified": _write_time(lifecycle.modified),
            "training_start": _write_time(lifecycle.training_start),
            "training_end": _write_time(lifecycle.training_end),
            "failure_reason": lifecycle.failure_reason,
            "stop_cause": lifecycle.stop_cause,
            "model_artifact": job.model_artifact,
            "final_metrics": [
                {**metric, "Timestamp": _write_time(metric["Timestamp"])} for metric in job.final_metrics
            ],
        }
    )


def decode_job(name: str, arn: str, request: str, record: str) -> Job:
    """The job of a row."""
    data: dict[str, Any] = json.loads(record)
    lifecycle = Lifecycle(
        status=data["status"],
        secondary=data["secondary"],
        transitions=tuple(
            Transition(status, _time(start), _read_time(end), message)
            for status, start, end, message in data["transitions"]
        ),
        created=_time(data["created"]),
        modified=_time(data["modified"]),
        training_start=_read_time(data["training_start"]),
        training_end=_read_time(data["training_end"]),
        failure_reason=data["failure_reason"],
        stop_cause=data["stop_cause"],
    )
    metrics: tuple[Mapping[str, Any], ...] = tuple(
        {**metric, "Timestamp": _time(metric["Timestamp"])} for metric in data["final_metrics"]
    )
    return Job(name, arn, json.loads(request), lifecycle, data["model_artifact"], metrics)


def _write_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(timezone.utc).isoformat()


def _read_time(text: str | None) -> datetime | None:
    return None if text is None else _time(text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@dataclass(frozen=True)
class PageToken:
    """The last row of a page. A next page starts behind it, whatever was added meanwhile."""

    order: str
    value: str | int
    name: str

    def encode(self) -> str:
        """Opaque text."""
        data = json.dumps([self.order, self.value, self.name], separators=(",", ":"))
        return base64.urlsafe_b64encode(data.encode()).decode()


def decode_token(text: str, order: str) -> PageToken:
    """A token that we gave out for the same order.

    Raises:
        ValidationFailed: it is not one.
    """
    try:
        given_order, value, name = json.loads(base64.b64decode(text.encode(), altchars=b"-_", validate=True))
        typed = isinstance(name, str) and isinstance(value, int if order.startswith("CreationTime") else str)
    except (binascii.Error, ValueError, TypeError):
        raise ValidationFailed("NextToken is not one that this service gave out.") from None
    if given_order != order or not typed:
        raise ValidationFailed("NextToken belongs to a list in another order; repeat SortBy and SortOrder.")
    return PageToken(order, value, name)
