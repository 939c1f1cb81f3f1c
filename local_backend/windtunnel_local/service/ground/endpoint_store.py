"""The part of `ports.Store` that stores models, endpoint configurations, endpoints and transform jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windtunnel_local.service.ground.hosting import Invocation, Kind, Resource, ResourceQuery


@dataclass(frozen=True)
class EndpointMetric:
    """One minute of one metric. ``counts``: how often each value occurred; ``minute_ms``: its start, Unix ms."""

    endpoint: str
    variant: str
    name: str
    minute_ms: int
    counts: Mapping[float, int]


class EndpointStore(Protocol):
    """Stores resources, invocations and metrics. Each change is durable when the call returns. Thread-safe."""

    def insert_resource(self, resource: Resource) -> None:
        """Record a new resource; raises ``ResourceExists``."""

    def get_resource(self, kind: Kind, name: str) -> Resource | None:
        """The record, or None."""

    def update_resource(self, resource: Resource) -> None:
        """Replace what may change: status, record, tags, time of the change. Raises ``ResourceNotFound``."""

    def delete_resource(self, kind: Kind, name: str) -> bool:
        """Remove a resource; return whether there was one."""

    def list_resources(self, query: ResourceQuery) -> tuple[Sequence[Resource], str | None]:
        """One page, and the token of the next one (None at the end). Raises ``ValidationFailed`` for a bad token."""

    def add_invocation(self, invocation: Invocation) -> None:
        """Append an asynchronous invocation to the endpoint's queue."""

    def invocations(self, endpoint: str, after: int, limit: int) -> Sequence[tuple[int, Invocation]]:
        """The invocations of an endpoint with numbers above ``after``, with their numbers, oldest first."""

    def remove_invocation(self, invocation_id: str) -> None:
        """Remove an invocation that is answered. Idempotent."""

    def remove_invocations(self, endpoint: str) -> None:
        """Remove all invocations of an endpoint. Idempotent."""

    def append_endpoint_metrics(self, metrics: Sequence[EndpointMetric]) -> None:
        """Store the values in one transaction; remove values older than 15 days."""

    def endpoint_metrics(
        self, endpoint: str, variant: str, name: str, start_ms: int, end_ms: int
    ) -> Sequence[EndpointMetric]:
        """The minutes of one metric with start_ms <= minute < end_ms, in order of time."""

    def endpoint_metric_names(self) -> Sequence[tuple[str, str, str]]:
        """All (endpoint, variant, metric) names that have values, sorted."""
