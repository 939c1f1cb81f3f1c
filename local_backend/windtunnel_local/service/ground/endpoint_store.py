"""What is kept of models and endpoints: a part of `ports.Store`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windtunnel_local.service.ground.hosting import Invocation, Kind, Resource, ResourceQuery


@dataclass(frozen=True)
class EndpointMetric:
    """A minute of one metric: each value, and how often there was one. ``minute_ms``: its beginning."""

    endpoint: str
    variant: str
    name: str
    minute_ms: int
    counts: Mapping[float, int]


class EndpointStore(Protocol):
    """Durable when a call returns. Safe from several threads."""

    def insert_resource(self, resource: Resource) -> None:
        """Record a new one; raises ``ResourceExists``."""

    def get_resource(self, kind: Kind, name: str) -> Resource | None:
        """The record, or None."""

    def update_resource(self, resource: Resource) -> None:
        """Replace what may change: status, record, tags, the time. Raises ``ResourceNotFound``."""

    def delete_resource(self, kind: Kind, name: str) -> bool:
        """Whether there was one."""

    def list_resources(self, query: ResourceQuery) -> tuple[Sequence[Resource], str | None]:
        """One page and the token of the next (None at the end). Raises ``ValidationFailed``: not such a token."""

    def add_invocation(self, invocation: Invocation) -> None:
        """Behind all others."""

    def invocations(self, endpoint: str, after: int, limit: int) -> Sequence[tuple[int, Invocation]]:
        """An endpoint's with their numbers, in the order in which they were accepted, behind a number."""

    def remove_invocation(self, invocation_id: str) -> None:
        """It is answered. Idempotent."""

    def remove_invocations(self, endpoint: str) -> None:
        """All of an endpoint. Idempotent."""

    def append_endpoint_metrics(self, metrics: Sequence[EndpointMetric]) -> None:
        """Store them in one transaction; those of more than 15 days before are removed."""

    def endpoint_metrics(
        self, endpoint: str, variant: str, name: str, start_ms: int, end_ms: int
    ) -> Sequence[EndpointMetric]:
        """Those of minutes with start_ms <= minute < end_ms, in order of time."""

    def endpoint_metric_names(self) -> Sequence[tuple[str, str, str]]:
        """Endpoints, variants and metrics that there are, in order."""
