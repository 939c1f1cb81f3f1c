"""What is deployed, as data: models, endpoint configurations and endpoints, each a `Resource`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from windtunnel_local.service.ground.list_query import ListQuery

Kind = Literal["model", "endpoint-config", "endpoint"]
"""As in ARNs."""
EndpointStatus = Literal["Creating", "InService", "Updating", "Failed", "Deleting"]

LOG_GROUPS = "/aws/sagemaker/Endpoints/"
"""What the name of each endpoint's log group begins with."""
LIMIT_TAG = "windtunnel:max-seconds"
"""Of an endpoint: when it is deleted, counted from its creation."""
_SLOTS = "endpoint_"
"""What an instance's slot begins with; no job's name has a "_", so none is taken for one."""


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
    """One container of an endpoint. One that ends has a successor with another number."""

    endpoint: str
    created: str
    """When the endpoint was, as text: tells apart two of one name."""
    number: int
    variant: str
    generation: int
    ready: bool = False
    """Whether it has answered a ping."""

    @property
    def slot(self) -> str:
        """Its name for the runner."""
        return f"{_SLOTS}{self.endpoint}.{self.number}"

    @property
    def id(self) -> str:
        """As EC2 names instances."""
        seed = f"{self.endpoint} {self.created} {self.number}"
        return f"i-{hashlib.sha256(seed.encode()).hexdigest()[:17]}"

    @property
    def stream(self) -> str:
        """Its log stream in the endpoint's group."""
        return f"{self.variant}/{self.id}"


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


def stored_stream(group: str, stream: str) -> str:
    """The name of an endpoint's stream in the store, which has one space of names for all groups.

    No training job's stream begins with a slash.
    """
    return f"{group}:{stream}"
