"""All reads and changes of the records of models, endpoint configurations, endpoints and transform jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.errors import ResourceNotFound
from windtunnel_local.service.ground.hosting import (
    AsyncInference,
    EndpointState,
    EndpointStatus,
    Fleet,
    Instance,
    Kind,
    Resource,
    ResourceQuery,
    TransformState,
    Variant,
)
from windtunnel_local.service.ground.ports import Clock, Store
from windtunnel_local.service.request import validation

_SERVING: Sequence[Kind] = ("endpoint", "transform-job")


class Records:
    """The records of all resources; only one is changed at a time. Thread-safe, with one object for each store."""

    def __init__(self, store: Store, clock: Clock, config: ServiceConfig) -> None:
        """``config`` gives the account and region of ARNs."""
        self._store = store
        self._clock = clock
        self._config = config
        self._lock = threading.Lock()

    def create(
        self, kind: Kind, name: str, request: Mapping[str, Any], status: str | None = None, record: Any = None
    ) -> Resource:
        """Create a record, with the request's Tags as its tags; raises ``ResourceExists``, ``ValidationFailed``."""
        validation.tags(request.get("Tags", ()))
        tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}
        members = {member: value for member, value in request.items() if member != "Tags"}
        now = self._clock.now()
        made = Resource(
            kind, name, self._config.arn(kind, name), now, now, members, status, record or {}, tags
        )
        self._store.insert_resource(made)
        return made

    def get(self, kind: Kind, name: str) -> Resource:
        """The record; raises ``ResourceNotFound``."""
        found = self._store.get_resource(kind, name)
        if found is None:
            raise ResourceNotFound(kind, self._config.arn(kind, name))
        return found

    def amend(self, kind: Kind, name: str, change: Callable[[Resource], Resource]) -> Resource:
        """Change a record, store it and return it. Raises ``ResourceNotFound``, and the errors of ``change``."""
        with self._lock:
            before = self.get(kind, name)
            after = change(before)
            if after != before:
                after = replace(after, modified=self._clock.now())
                self._store.update_resource(after)
            return after

    def set(
        self,
        name: str,
        change: Callable[[EndpointState], EndpointState],
        status: EndpointStatus | None = None,
    ) -> EndpointState:
        """Change an endpoint's state, and its status if one is given. The status Deleting is never changed."""

        def changed(endpoint: Resource) -> Resource:
            record = encoded(change(decoded(endpoint.record)))
            now = endpoint.status if status is None or endpoint.status == "Deleting" else status
            return replace(endpoint, record=record, status=now)

        return decoded(self.amend("endpoint", name, changed).record)


def all_of(store: Store, kind: Kind) -> Sequence[Resource]:
    """All resources of a kind."""
    return store.list_resources(ResourceQuery(kind, limit=1 << 31))[0]


def instance_slots(store: Store) -> set[str]:
    """The slots of all recorded instances; each instance is recorded before its container is made."""
    owners: Iterator[Resource] = (owner for kind in _SERVING for owner in all_of(store, kind))
    return {instance.slot for owner in owners for instance in _instances(owner.record)}


def encoded(state: EndpointState | TransformState) -> dict[str, Any]:
    """The state as a dict that can be written as JSON."""
    return asdict(state)


def decoded(record: Mapping[str, Any]) -> EndpointState:
    """An endpoint's state, from the dict that `encoded` made."""
    following = record["following"]
    return EndpointState(
        _fleet(record["fleet"]),
        None if following is None else _fleet(following),
        _instances(record),
        record["made"],
        record["failure_reason"],
    )


def decoded_transform(record: Mapping[str, Any]) -> TransformState:
    """A transform job's state, from the dict that `encoded` made."""
    return TransformState(
        **{**record, "variant": Variant(**record["variant"]), "instances": _instances(record)}
    )


def _instances(record: Mapping[str, Any]) -> tuple[Instance, ...]:
    return tuple(Instance(**instance) for instance in record["instances"])


def _fleet(record: Mapping[str, Any]) -> Fleet:
    asynchronous = record.get("asynchronous")
    return Fleet(
        record["config"],
        record["generation"],
        tuple(Variant(**variant) for variant in record["variants"]),
        None if asynchronous is None else AsyncInference(**asynchronous),
        record.get("updated"),
    )
