"""Jobs as JSON text, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.service.ground.job import Job, Lifecycle, SpotTerms, Transition, WarmPool


def encode_record(job: Job) -> str:
    """All of a job except its request, as JSON text."""
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
            "slot": job.slot,
            "spot": job.spot and asdict(job.spot),
            "updates": job.updates,
            "warm_pool": job.warm_pool and asdict(job.warm_pool),
        }
    )


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


def _write_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(timezone.utc).isoformat()


def read_time(text: str | None) -> datetime | None:
    """Read a time that `encode_record` has written (ISO 8601)."""
    return None if text is None else _time(text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
