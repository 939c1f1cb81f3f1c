"""Models, endpoint configurations, endpoints and transform jobs as data, each a `Resource`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from windtunnel_local.service.ground.list_query import ListQuery

ServingKind = Literal["endpoint", "transform-job"]
"""The kinds of resources that have instances."""
Kind = Literal["model", "endpoint-config", "endpoint", "transform-job"]
"""The kinds of resources, as they stand in ARNs."""
KINDS: tuple[Kind, ...] = get_args(Kind)
EndpointStatus = Literal["Creating", "InService", "Updating", "Failed", "Deleting"]
TransformStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]

LOG_GROUPS = "/aws/sagemaker/Endpoints/"
"""The prefix of each endpoint's log group; the endpoint's name follows."""
TRANSFORM_GROUP = "/aws/sagemaker/TransformJobs"
"""The log group of all transform jobs."""
LIMIT_TAG = "windtunnel:max-seconds"
"""A tag of an endpoint: it is deleted so many seconds after its creation."""
STARTUP_S = 480
"""Seconds that a container has to answer its first ping: AWS's eight minutes, unless the variant sets another time."""


@dataclass(frozen=True)
class Resource:
    """One record. ``request``: the request that made it, without Tags; ``record``: its current state, as JSON."""

    kind: Kind
    name: str
    arn: str
    created: datetime
    modified: datetime
    request: Mapping[str, Any]
    status: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ResourceQuery(ListQuery):
    """A query for the resources of one kind."""

    kind: Kind


@dataclass(frozen=True)
class Variant:
    """A production variant, copied when the endpoint was created or updated: its model may be deleted since then.

    ``container``: as CreateModel named it; ``timeout_s``: seconds from the container's start to its first good ping.
    """

    name: str
    model: str
    container: Mapping[str, Any]
    instance_type: str
    count: int
    weight: float
    timeout_s: int


@dataclass(frozen=True)
class Instance:
    """One container of an endpoint or a transform job. If it ends, another with a new number replaces it."""

    owner: str
    """The name of the endpoint or transform job."""
    created: str
    """When the owner was created, as text: distinguishes two owners that had the same name."""
    number: int
    variant: str
    """The variant's name; for a transform job the job's name."""
    generation: int
    ready: bool = False
    """Whether it has answered a ping."""
    kind: ServingKind = "endpoint"
    """The owner's kind."""

    @property
    def owned_by(self) -> str:
        """The owner's kind and name, for messages."""
        return f"{self.kind.replace('-', ' ')} {self.owner}"

    @property
    def slot(self) -> str:
        """The runner's name for it. It has a "_", as no training job's name has, so that the two cannot be confused."""
        return f"{self.kind.partition('-')[0]}_{self.owner}.{self.number}"

    @property
    def id(self) -> str:
        """An instance id in EC2's form, always the same for this instance."""
        seed = f"{self.owner} {self.created} {self.number}"
        return f"i-{hashlib.sha256(seed.encode()).hexdigest()[:17]}"

    @property
    def group(self) -> str:
        """The instance's log group."""
        return LOG_GROUPS + self.owner if self.kind == "endpoint" else TRANSFORM_GROUP

    @property
    def stream(self) -> str:
        """The instance's log stream in that group, as AWS names it."""
        if self.kind == "endpoint":
            return f"{self.variant}/{self.id}"
        return f"{self.owner}/{self.id}-{int(datetime.fromisoformat(self.created).timestamp())}"


@dataclass(frozen=True)
class AsyncInference:
    """AsyncInferenceConfig: the S3 URIs for answers and failures, and how many requests an instance gets at once."""

    output: str
    failure: str | None
    at_once: int


@dataclass(frozen=True)
class Invocation:
    """An accepted InvokeEndpointAsync. ``headers``: for the container; input, output and failure are S3 URIs."""

    id: str
    endpoint: str
    accepted_ms: int
    input: str
    headers: Mapping[str, str]
    output: str
    failure: str | None
    ttl_s: int
    timeout_s: int


@dataclass(frozen=True)
class Fleet:
    """All variants of one endpoint configuration; they go in and out of service together."""

    config: str
    generation: int
    variants: tuple[Variant, ...]
    asynchronous: AsyncInference | None = None
    updated: str | None = None
    """When the update to it was asked for, as ISO text; None: the endpoint was created with it."""

    @property
    def count(self) -> int:
        """The number of its instances."""
        return sum(variant.count for variant in self.variants)


@dataclass(frozen=True)
class EndpointState:
    """The current state of an endpoint. ``following``: the fleet of an update, which takes over once it is ready."""

    fleet: Fleet
    following: Fleet | None = None
    instances: tuple[Instance, ...] = ()
    made: int = 0
    failure_reason: str | None = None

    @property
    def fleets(self) -> tuple[Fleet, ...]:
        """The fleets whose instances should run."""
        return (self.fleet,) if self.following is None else (self.fleet, self.following)

    def of(self, fleet: Fleet, variant: str | None = None) -> tuple[Instance, ...]:
        """The instances of a fleet, or of one of its variants."""
        return tuple(
            i for i in self.instances if i.generation == fleet.generation and variant in (None, i.variant)
        )

    def variant(self, instance: Instance) -> Variant | None:
        """The variant that an instance belongs to; None if no fleet has this variant any more."""
        fleets = (fleet for fleet in self.fleets if fleet.generation == instance.generation)
        return next((v for fleet in fleets for v in fleet.variants if v.name == instance.variant), None)

    def without(self, numbers: Sequence[int]) -> EndpointState:
        """A copy of the state without these instances."""
        return replace(self, instances=tuple(i for i in self.instances if i.number not in numbers))


@dataclass(frozen=True)
class TransformState:
    """The current state of a transform job. Times are ISO 8601 texts, UTC.

    ``variant``: its model and instances, as for an endpoint; its ``container`` includes the job's Environment.
    """

    variant: Variant
    instances: tuple[Instance, ...] = ()
    made: int = 0
    started: str | None = None
    ended: str | None = None
    failure_reason: str | None = None


def stored_stream(group: str, stream: str) -> str:
    """The name of an instance's log stream in the store, where the streams of all groups share one namespace.

    It begins with the group's slash, as no training job's stream does.
    """
    return f"{group}:{stream}"
