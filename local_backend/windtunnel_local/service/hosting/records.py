"""The one way to read and to change an endpoint's record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
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
    Variant,
)
from windtunnel_local.service.ground.ports import Clock, Store

ALL_ENDPOINTS = ResourceQuery("endpoint", limit=1 << 31)


class Records:
    """All resources: one change at a time. Safe from several threads."""

    def __init__(self, store: Store, clock: Clock, config: ServiceConfig) -> None:
        """``config``: gives the account and region of ARNs."""
        self._store = store
        self._clock = clock
        self._config = config
        self._lock = threading.Lock()

    def get(self, kind: Kind, name: str) -> Resource:
        """The record; raises ``ResourceNotFound``."""
        found = self._store.get_resource(kind, name)
        if found is None:
            raise ResourceNotFound(kind, self._config.arn(kind, name))
        return found

    def amend(self, kind: Kind, name: str, change: Callable[[Resource], Resource]) -> Resource:
        """Change a record, durably; returns it. Raises ``ResourceNotFound``, and what ``change`` raises."""
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
        """Change an endpoint's state, and its status where one is given. One that is Deleting stays so."""

        def changed(endpoint: Resource) -> Resource:
            record = encoded(change(decoded(endpoint.record)))
            now = endpoint.status if status is None or endpoint.status == "Deleting" else status
            return replace(endpoint, record=record, status=now)

        return decoded(self.amend("endpoint", name, changed).record)


def instance_slots(store: Store) -> set[str]:
    """Of all instances there should be; each is recorded before its container is made."""
    endpoints, _ = store.list_resources(ALL_ENDPOINTS)
    return {instance.slot for endpoint in endpoints for instance in decoded(endpoint.record).instances}


def encoded(state: EndpointState) -> dict[str, Any]:
    """As JSON has it."""
    return asdict(state)


def decoded(record: Mapping[str, Any]) -> EndpointState:
    """What `encoded` has made."""
    following = record["following"]
    return EndpointState(
        _fleet(record["fleet"]),
        None if following is None else _fleet(following),
        tuple(Instance(**instance) for instance in record["instances"]),
        record["made"],
        record["failure_reason"],
    )


def _fleet(record: Mapping[str, Any]) -> Fleet:
    asynchronous = record.get("asynchronous")
    return Fleet(
        record["config"],
        record["generation"],
        tuple(Variant(**variant) for variant in record["variants"]),
        None if asynchronous is None else AsyncInference(**asynchronous),
    )
