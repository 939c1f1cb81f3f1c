"""The nodes of one cluster as containers, on a network of the cluster's own.

They are found by names and labels in the engine, so a new background process finds what an old one has started.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import requests
from docker import APIClient
from docker.errors import APIError, NotFound
from docker.types import LogConfig, Mount, NetworkingConfig

from windtunnel.priceperf.instances import CATALOG
from windtunnel_local.cluster.configuration import ClusterConfiguration
from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.machine import Machine, user_of
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.runner.docker import shims
from windtunnel_local.runner.docker.abandoned import is_gone
from windtunnel_local.runner.docker.client import Engine, engine_errors, image_not_found, run_in, unless_gone
from windtunnel_local.runner.docker.create_arguments import CA_BUNDLE_TARGET
from windtunnel_local.runner.host_network import HostNetwork

CLUSTER_LABEL = "windtunnel.cluster"
FOLDER_LABEL = "windtunnel.cluster-folder"
NODE_LABEL = "windtunnel.node"
TYPE_LABEL = "windtunnel.instance-type"

_CAPABILITIES = [
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID",
    "SYS_CHROOT",
    # Gone for good when the node's first process has used them (start.sh).
    "NET_ADMIN", "SETPCAP",
]  # fmt: skip
"""Capabilities that slurmd, sshd and sudo need: an ordinary container's without devices, raw sockets and setfcap."""
_PIDS_LIMIT = 32768
_SYSCTLS = {"net.ipv4.ip_local_reserved_ports": "44000,48620"}
"""Settings that AWS's scripts make with `sudo sysctl -w`. Containers may not, so they are made at the start."""
_LOG_LIMIT = "20m"
_LONGEST_LABEL = 63
_TOGETHER = 4


@dataclass(frozen=True)
class NodeContainer:
    """A node as the engine sees it. ``state``: docker's word. ``address``: empty unless it runs."""

    node: str
    id: str
    state: str
    address: str
    instance_type: str
    launched: str
    """When it was made; the record's form of times."""


class Nodes:
    """The containers and the network of the cluster in one folder. All calls block, and raise ``RunnerError``."""

    def __init__(self, layout: Layout, machine: Machine, network: HostNetwork, engine: Engine) -> None:
        self._layout = layout
        self._machine = machine
        self._host = network
        self._engine = engine
        self._cluster = layout.folder.name
        self._network = _engine_name(layout.folder, self._cluster)
        self._labels = {CLUSTER_LABEL: self._cluster, FOLDER_LABEL: str(layout.folder)}
        self._filters = {"label": [f"{FOLDER_LABEL}={layout.folder}"]}

    def found(self) -> dict[str, NodeContainer]:
        """All containers of the cluster, by node."""
        with engine_errors(f"list the nodes of cluster {self._cluster}"):
            listed = self._engine.client().api.containers(all=True, filters=self._filters)
        return {each.node: each for each in map(_container, listed) if each.node}

    def ensure_network(self) -> None:
        """Make the cluster's network. Idempotent."""
        api = self._engine.client().api
        with engine_errors(f"create the network of cluster {self._cluster}"):
            if not api.networks(filters=self._filters):
                api.create_network(self._network, driver="bridge", labels=self._labels)

    def start(self, node: str, instance_type: str, configuration: ClusterConfiguration) -> None:
        """Make a node if it is missing, and start it unless it runs. Idempotent."""
        api = self._engine.client().api
        with engine_errors(f"create node {node}"):
            endpoint = api.create_endpoint_config(aliases=[node])
            try:
                api.create_container(
                    self._machine.image,
                    ["head" if node == HEAD else "compute"],
                    name=self._name(node),
                    hostname=node,
                    working_dir="/",  # the image's would be made in the shared /home
                    environment=self._environment(node, instance_type, configuration),
                    labels={**self._labels, NODE_LABEL: node, TYPE_LABEL: instance_type},
                    host_config=api.create_host_config(
                        **self._host_arguments(node, instance_type, configuration)
                    ),
                    networking_config=NetworkingConfig({self._network: endpoint}),  # type: ignore[arg-type]
                )
            except APIError as error:
                if error.status_code == requests.codes.not_found:
                    raise image_not_found(self._machine.image) from error
                if error.status_code != requests.codes.conflict:  # the name is taken: made before
                    raise
        with engine_errors(f"start node {node}"):
            api.start(self._name(node))

    def remove(self, node: str) -> None:
        """Kill and remove a node. Idempotent."""
        with engine_errors(f"remove node {node}"):
            self._remove(self._name(node))

    def remove_all(self) -> None:
        """Kill and remove all nodes, and the network. Idempotent."""
        api = self._engine.client().api
        with engine_errors(f"remove cluster {self._cluster}"):
            found = [each["Id"] for each in api.containers(all=True, filters=self._filters)]
            with ThreadPoolExecutor(_TOGETHER) as pool:
                list(pool.map(self._remove, found))
            for network in api.networks(filters=self._filters):
                with suppress(NotFound):
                    api.remove_network(network["Id"])

    def run(self, node: str, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in a node as root; its exit code, and what it printed on both streams.

        Raises:
            ClusterError: the node does not run.
        """
        with engine_errors(f"run {command[0]} in node {node}"):
            try:
                return run_in(self._engine.client().api, self._name(node), command, user="root")
            except APIError as error:
                if error.status_code in (requests.codes.not_found, requests.codes.conflict):
                    raise ClusterError(f"Node {node} of cluster {self._cluster} does not run.") from error
                raise

    def tail(self, node: str, lines: int) -> str:
        """The last lines that the node's daemons have printed."""
        with engine_errors(f"read the log of node {node}"), suppress(NotFound):
            said = self._engine.client().api.logs(self._name(node), tail=lines)
            return bytes(said).decode(errors="replace")
        return ""

    def clear_folder(self) -> None:
        """Give the caller the files that root in a node has made in shared folders, so that they can be removed."""
        folder = self._layout.folder
        owner = f"{self._machine.uid}:{self._machine.gid}"
        api = self._engine.client().api
        with engine_errors(f"take over the files of cluster {self._cluster}"):
            made = api.create_container(
                self._machine.image,
                ["-hR", owner, "/cluster"],
                entrypoint=["chown"],
                user="0",
                labels=self._labels,
                network_disabled=True,
                host_config=api.create_host_config(
                    mounts=[Mount("/cluster", str(folder), type="bind")],
                    cap_drop=["ALL"],
                    cap_add=["CHOWN", "DAC_OVERRIDE", "FOWNER"],
                ),
            )
            try:
                api.start(made["Id"])
                api.wait(made["Id"])
            finally:
                api.remove_container(made["Id"], force=True)

    # --- one container ---

    def _environment(
        self, node: str, instance_type: str, configuration: ClusterConfiguration
    ) -> dict[str, str]:
        return {
            **self._host.job_environment(CA_BUNDLE_TARGET),
            "CLUSTER_USER": user_of(configuration.os),
            "CLUSTER_UID": str(self._machine.uid),
            "CLUSTER_GID": str(self._machine.gid),
            "WINDTUNNEL_CLUSTER_REGION": configuration.region,
            "WINDTUNNEL_INSTANCE_TYPE": f"ml.{instance_type}",
            **({} if node == HEAD else self._machine.environment),
        }

    def _host_arguments(
        self, node: str, instance_type: str, configuration: ClusterConfiguration
    ) -> dict[str, Any]:
        mounts = self._layout.mounts(configuration, head=node == HEAD)
        binds = [
            Mount(target, str(source), type="bind", read_only=not writable)
            for target, (source, writable) in mounts.items()
        ]
        if self._host.ca_bundle is not None:
            binds.append(Mount(CA_BUNDLE_TARGET, str(self._host.ca_bundle), type="bind", read_only=True))
        memory = self._machine.memory_bytes
        known = CATALOG.get(f"ml.{instance_type}")
        if known is not None:
            memory = min(memory, known.host_memory_bytes)
        return {
            "init": True,
            "mounts": binds,
            "network_mode": self._network,
            "shm_size": memory // 2,
            "mem_limit": memory,
            "memswap_limit": memory,
            "pids_limit": _PIDS_LIMIT,
            "cap_drop": ["ALL"],
            "cap_add": _CAPABILITIES,
            "sysctls": _SYSCTLS,
            "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": _LOG_LIMIT}),
        }

    def _remove(self, container: str) -> None:
        api = self._engine.client().api
        with suppress(NotFound):
            found = api.inspect_container(container)
            with unless_gone():  # somebody removes it already
                api.remove_container(container, force=True, v=True)
            if found["State"]["Status"] == "created":  # or so says an engine that was killed meanwhile
                shims.end(found["Id"])

    def _name(self, node: str) -> str:
        return _engine_name(self._layout.folder, node)


def running(api: APIClient, folder: Path, node: str) -> str | None:
    """The name of a running node's container; None: it does not run. ``folder``: the cluster's."""
    filters = {"label": [f"{FOLDER_LABEL}={folder}", f"{NODE_LABEL}={node}"], "status": "running"}
    found = api.containers(filters=filters)
    return str(found[0]["Names"][0]).lstrip("/") if found else None


def remove_abandoned(engine: Engine) -> None:
    """Remove containers and networks of clusters whose folders are gone, in all homes. Idempotent."""
    api = engine.client().api
    with engine_errors("remove what is left of clusters that are gone"):
        filters = {"label": [FOLDER_LABEL]}
        for container in api.containers(all=True, filters=filters):
            if is_gone(container["Labels"][FOLDER_LABEL]):
                with suppress(NotFound):
                    api.remove_container(container["Id"], force=True, v=True)
        for network in api.networks(filters=filters):
            if is_gone(network["Labels"][FOLDER_LABEL]):
                with suppress(APIError):  # in use, or gone meanwhile
                    api.remove_network(network["Id"])


def _engine_name(folder: Path, name: str) -> str:
    """The name of a container or network in the engine.

    The engine's DNS uses it as a host name. More than 63 characters make every reverse look-up of a peer wait
    for 10 s, so a long name is cut.
    """
    digest = hashlib.sha256(f"{folder}\n{name}".encode()).hexdigest()[:8]
    begins = f"windtunnel-{digest}-"
    return begins + name[-(_LONGEST_LABEL - len(begins)) :].lstrip("-")


def _container(listed: Mapping[str, Any]) -> NodeContainer:
    labels = listed["Labels"]
    networks = (listed.get("NetworkSettings") or {}).get("Networks") or {}
    addresses = [network.get("IPAddress") or "" for network in networks.values()]
    return NodeContainer(
        node=labels.get(NODE_LABEL, ""),
        id=listed["Id"],
        state=listed["State"],
        address=next(iter(addresses), ""),
        instance_type=labels.get(TYPE_LABEL, ""),
        launched=f"{datetime.fromtimestamp(listed['Created'], timezone.utc):%Y-%m-%dT%H:%M:%S}.000Z",
    )
