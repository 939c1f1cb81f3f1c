"""What serves, as data: models, endpoint configurations, endpoints and transform jobs, each a `Resource`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from windtunnel_local.service.ground.list_query import ListQuery

ServingKind = Literal["endpoint", "transform-job"]
"""What has instances."""
Kind = Literal["model", "endpoint-config", "endpoint", "transform-job"]
"""As in ARNs."""
KINDS: tuple[Kind, ...] = get_args(Kind)
EndpointStatus = Literal["Creating", "InService", "Updating", "Failed", "Deleting"]
TransformStatus = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]

LOG_GROUPS = "/aws/sagemaker/Endpoints/"
"""What the name of each endpoint's log group begins with."""
TRANSFORM_GROUP = "/aws/sagemaker/TransformJobs"
"""The log group of all transform jobs."""
LIMIT_TAG = "windtunnel:max-seconds"
"""Of an endpoint: when it is deleted, counted from its creation."""
STARTUP_S = 480
"""AWS gives a container eight minutes to answer a ping, unless an endpoint's variant says otherwise."""


@dataclass(frozen=True)
class Resource:
    """One record. ``request``: what it was made of, without Tags; ``record``: what has become of it, as JSON."""

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
    """A list of one kind."""

    kind: Kind


@dataclass(frozen=True)
class Variant:
    """A production variant as it was when its endpoint took it: the model may be deleted since.

    ``container``: CreateModel's; ``timeout_s``: from the container's start to its first good answer to a ping.
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
    """One container of an endpoint or a transform job. One that ends has a successor with another number."""

    owner: str
    """The name of that endpoint or job."""
    created: str
    """When the owner was, as text: tells apart two of one name."""
    number: int
    variant: str
    """Of a transform job: the job's name."""
    generation: int
    ready: bool = False
    """Whether it has answered a ping."""
    kind: ServingKind = "endpoint"
    """Of the owner."""

    @property
    def owned_by(self) -> str:
        """The owner, for messages."""
        return f"{self.kind.replace('-', ' ')} {self.owner}"

    @property
    def slot(self) -> str:
        """Its name for the runner. No training job's name has a "_", so none is taken for one."""
        return f"{self.kind.partition('-')[0]}_{self.owner}.{self.number}"

    @property
    def id(self) -> str:
        """As EC2 names instances."""
        seed = f"{self.owner} {self.created} {self.number}"
        return f"i-{hashlib.sha256(seed.encode()).hexdigest()[:17]}"

    @property
    def group(self) -> str:
        """Its log group."""
        return LOG_GROUPS + self.owner if self.kind == "endpoint" else TRANSFORM_GROUP

    @property
    def stream(self) -> str:
        """Its log stream in that group, as AWS names it."""
        if self.kind == "endpoint":
            return f"{self.variant}/{self.id}"
        return f"{self.owner}/{self.id}-{int(datetime.fromisoformat(self.created).timestamp())}"


@dataclass(frozen=True)
class AsyncInference:
    """An endpoint asked through S3: where answers go, and how many questions an instance is asked at once."""

    output: str
    failure: str | None
    at_once: int


@dataclass(frozen=True)
class Invocation:
    """A question of InvokeEndpointAsync that was accepted. ``headers``: the container's; locations are S3 URIs."""

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
    """The variants of one configuration, all in service together."""

    config: str
    generation: int
    variants: tuple[Variant, ...]
    asynchronous: AsyncInference | None = None

    @property
    def count(self) -> int:
        """Of its instances."""
        return sum(variant.count for variant in self.variants)


@dataclass(frozen=True)
class EndpointState:
    """What an endpoint is made of now. ``following``: what takes its place when all of that is ready."""

    fleet: Fleet
    following: Fleet | None = None
    instances: tuple[Instance, ...] = ()
    made: int = 0
    failure_reason: str | None = None

    @property
    def fleets(self) -> tuple[Fleet, ...]:
        """What there is to be instances of."""
        return (self.fleet,) if self.following is None else (self.fleet, self.following)

    def of(self, fleet: Fleet, variant: str | None = None) -> tuple[Instance, ...]:
        """Instances of a fleet, or of one of its variants."""
        return tuple(
            i for i in self.instances if i.generation == fleet.generation and variant in (None, i.variant)
        )

    def variant(self, instance: Instance) -> Variant | None:
        """What it is an instance of; None if that is no longer wanted."""
        fleets = (fleet for fleet in self.fleets if fleet.generation == instance.generation)
        return next((v for fleet in fleets for v in fleet.variants if v.name == instance.variant), None)

    def without(self, numbers: Sequence[int]) -> EndpointState:
        """As it is when these instances are gone."""
        return replace(self, instances=tuple(i for i in self.instances if i.number not in numbers))


@dataclass(frozen=True)
class TransformState:
    """What has become of a transform job. Times: in ISO 8601, UTC.

    ``variant``: its model and instances, as an endpoint has them; ``container`` with the job's variables.
    """

    variant: Variant
    instances: tuple[Instance, ...] = ()
    made: int = 0
    started: str | None = None
    ended: str | None = None
    failure_reason: str | None = None


def stored_stream(group: str, stream: str) -> str:
    """The name of an instance's stream in the store, which has one space of names for all groups.

    No training job's stream begins with a slash.
    """
    return f"{group}:{stream}"
