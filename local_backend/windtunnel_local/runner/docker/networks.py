"""The networks that jobs are on: one of its own for a job of several hosts, one of the home for all others.

On the engine's default bridge every container reaches every port of every other one: a rendezvous of
one job is open to the script of the next. On the home's network containers see the outside, but not
each other; nor do they see those of other networks.

Networks are identified by their ids. The engine lets several have the same name. A network that a killed
server had asked for may appear only after the next server has asked again.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from docker.errors import APIError, NotFound

from windtunnel_local.runner.docker import abandoned, create_arguments
from windtunnel_local.runner.docker.client import Engine, engine_errors
from windtunnel_local.service.ground.errors import RunnerError

_SHARED: Mapping[str, Any] = {
    "driver": "bridge",
    "options": {"com.docker.network.bridge.enable_icc": "false"},
}


class Networks:
    """The networks of one home. All calls block; all are safe from several threads."""

    def __init__(self, engine: Engine, names: create_arguments.Names) -> None:
        self._engine = engine
        self._names = names
        self._lock = threading.Lock()

    def ensure_own(self, job: str, isolated: bool) -> str:
        """The id of a network of the job's own. Idempotent.

        Raises:
            RunnerError: it is to be isolated, which Podman cannot.
        """
        if isolated and self._engine.kind.podman:
            raise RunnerError(
                f"Job {job} has several hosts and network isolation: Podman's networks always reach this machine."
                " Run it on Docker's engine (DOCKER_HOST), on one host, or without isolation."
            )
        labels = self._names.labels(job)
        with engine_errors(f"create the network of job {job}"):
            return self._ensure(
                self._names.network(job), labels, create_arguments.network_arguments(isolated)
            )

    def ensure_shared(self) -> str:
        """The id of the home's network. Idempotent; 2 ms where it is there."""
        with self._lock, engine_errors("create the network of this home's jobs"):
            if not self._named(self._names.shared_network):
                self._remove_abandoned()
            return self._ensure(self._names.shared_network, self._names.labels(), _SHARED)

    def remove_shared(self) -> None:
        """Remove the home's network, unless containers are on it or the engine does not answer. Idempotent."""
        with suppress(RunnerError), engine_errors("remove the network of this home's jobs"):
            for network in self._named(self._names.shared_network):
                with suppress(APIError):  # the next server of the home removes it, when it leaves
                    self._remove(network)

    def remove_own(self, filters: Mapping[str, Any]) -> None:
        """Remove a job's own networks, by labels. Idempotent. Docker's errors are the caller's."""
        for network in self._engine.client().api.networks(filters=filters):
            with suppress(NotFound):
                self._remove(network["Id"])

    def _remove(self, network: str) -> None:
        """Remove one network, after disconnecting containers that are gone: a killed engine may still list them."""
        api = self._engine.client().api
        for container, endpoint in api.inspect_network(network)["Containers"].items():
            try:
                api.inspect_container(container)
            except NotFound:
                api.disconnect_container_from_network(endpoint["Name"], network, force=True)
        api.remove_network(network)

    def _remove_abandoned(self) -> None:
        """Remove networks of homes that are gone: an engine has addresses for about thirty networks.

        First the containers on them, which would hold them for good.
        """
        api = self._engine.client().api
        abandoned.remove_running(api)
        for network in api.networks(filters={"label": [create_arguments.HOME_LABEL]}):
            if abandoned.is_gone(network["Labels"][create_arguments.HOME_LABEL]):
                with suppress(APIError):  # in use, or gone meanwhile
                    self._remove(network["Id"])

    def _ensure(self, name: str, labels: Mapping[str, str], arguments: Mapping[str, Any]) -> str:
        found = self._named(name)
        if found:
            return found[0]
        made = self._engine.client().api.create_network(name, labels=dict(labels), **arguments)
        return str(made["Id"])

    def _named(self, name: str) -> list[str]:
        """Ids of the networks of exactly this name, always in the same order."""
        found = self._engine.client().api.networks(names=[name])
        return sorted(network["Id"] for network in found if network["Name"] == name)


def own_address(networks: Iterable[Mapping[str, Any]]) -> str | None:
    """A container's own address, if one of its networks is a bridge of this machine; None: use its published port.

    At a published port the engine's proxy copies each byte, which takes a sixth of the time of a small request.
    """
    for network in networks:
        with suppress(OSError):
            socket.if_nametoindex(f"br-{network['NetworkID'][:12]}")
            return network["IPAddress"] or None
    return None
