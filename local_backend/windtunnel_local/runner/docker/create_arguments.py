"""Translate a `ContainerPlan` into arguments of the engine's API. Pure: makes no calls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docker.types import LogConfig
from docker.types import Mount as EngineMount

from windtunnel_local.runner.docker import kept_containers
from windtunnel_local.runner.host_network import HostNetwork
from windtunnel_local.service.ground.containers import ContainerPlan, Mount

HOME_LABEL = "windtunnel.home"
JOB_LABEL = "windtunnel.job"
HOST_LABEL = "windtunnel.host"

CA_BUNDLE_TARGET = "/opt/windtunnel/host/ca-bundle.crt"
"""Path of the host's CA certificates in a job."""

FORWARD_TARGET = "/opt/windtunnel/host/api"
"""Path in a job of the folder with the backend's socket, if the job's code may call the backend."""

_PIDS_LIMIT = 32768
"""Most processes of a container: enough for 32 workers with the threads of XLA, OpenMP and gRPC."""
_ROOT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
"""Capabilities that apt-get and tar need if the job runs as root. Another user gets none."""
_NO_CHOWN: Mapping[str, str] = {"TAR_OPTIONS": "--no-same-owner"}
"""The same for a rootless engine, without CHOWN: a file given to another user would get a user id that is kept for
containers, and neither this machine's user nor the backend could remove it."""
_LOG_LIMIT = "1t"
"""Set for each container, because a daemon.json may rotate logs away before they are read."""


_JOB_CHARACTERS = 28
"""Most characters of a job's name in a container's name, which has at most 63 with prefix, host and dashes."""


def _short(job: str) -> str:
    """The job's name. A long one is cut to its end, where default names differ, behind a hash of the whole name."""
    if len(job) <= _JOB_CHARACTERS:
        return job
    digest = hashlib.sha256(job.encode()).hexdigest()[:8]
    return f"{digest}-{job[len(digest) + 1 - _JOB_CHARACTERS :].lstrip('-')}"


class Names:
    """Names in the engine for the jobs of one home. Two homes never share a name.

    The names are host names too, in the engine's DNS: one of more than 63 characters makes every
    reverse look-up of a peer wait for 10 s. A job's name alone may have 63, so a long one is cut.
    """

    def __init__(self, home: Path) -> None:
        """``home``: the backend's, without links."""
        self._home = str(home)
        self._prefix = f"windtunnel-{hashlib.sha256(self._home.encode()).hexdigest()[:8]}"
        self.shared_network = f"{self._prefix}_jobs"
        """The name of the network of all jobs that have no network of their own. Has a "_", as no job's name has."""

    def container(self, job: str, host: str) -> str:
        return f"{self._prefix}-{_short(job)}-{host}"

    def network(self, job: str) -> str:
        return f"{self._prefix}-{_short(job)}"

    def labels(self, job: str | None = None, host: str | None = None) -> dict[str, str]:
        """Labels of all objects of this home, or of one job, or of one host."""
        labels = {HOME_LABEL: self._home}
        if job is not None:
            labels[JOB_LABEL] = job
        if host is not None:
            labels[HOST_LABEL] = host
        return labels


def container_arguments(
    plan: ContainerPlan, names: Names, network: HostNetwork, *, rootless: bool = False
) -> dict[str, Any]:
    """Arguments of the engine's create call, apart from its host and networking configuration.

    ``rootless``: then the container runs as root, which is this machine's user outside. Another user in it could
    not use that user's files.
    """
    return {
        "image": plan.image,
        "command": list(plan.command) or None,
        "entrypoint": list(plan.entrypoint) if plan.entrypoint is not None else None,
        "name": names.container(plan.job, plan.host),
        "hostname": plan.host,
        "environment": {**(_NO_CHOWN if rootless else {}), **environment(plan, network)},
        "user": "0:0" if rootless else plan.user,
        "ports": [plan.port] if plan.port is not None else None,
        **kept_containers.arguments(plan),
        "labels": {**plan.labels, **kept_containers.labels(plan), **names.labels(plan.job, plan.host)},
    }


def host_arguments(
    plan: ContainerPlan, network: HostNetwork, own_network: str | None, *, rootless: bool = False
) -> dict[str, Any]:
    """Arguments of the host configuration: limits, isolation, mounts. ``own_network``: id of the plan's network.

    ``init`` is a first process that forwards SIGTERM to `train` and reaps orphans. Without it
    `train` would be process 1. The kernel drops SIGTERM for process 1 without a handler, so
    every stop would last until SIGKILL.
    """
    mounts = list(plan.mounts)
    if network.ca_bundle is not None:
        mounts.append(Mount(str(network.ca_bundle), CA_BUNDLE_TARGET, read_only=True))
    if plan.forward is not None:
        # Its folder: the next server of the home makes a socket of its own there.
        mounts.append(Mount(str(Path(plan.forward.socket).parent), FORWARD_TARGET, read_only=True))
    capabilities = _ROOT_CAPABILITIES if rootless or runs_as_root(plan.user) else []
    arguments: dict[str, Any] = {
        "init": True,
        "mounts": [EngineMount(m.target, m.source, type="bind", read_only=m.read_only) for m in mounts],
        "shm_size": plan.shm_bytes,
        "pids_limit": _PIDS_LIMIT,
        "cap_drop": ["ALL"],
        "cap_add": [name for name in capabilities if not (rootless and name == "CHOWN")],
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": _LOG_LIMIT}),
    }
    if plan.port is not None:
        arguments["port_bindings"] = {plan.port: ("127.0.0.1",)}  # at a port of this machine that is free
    if plan.memory_bytes is not None:
        # Equal: no swap. A job that is too large shall fail as it would on the instance, not crawl.
        arguments |= {"mem_limit": plan.memory_bytes, "memswap_limit": plan.memory_bytes}
    if plan.network == "none":
        arguments |= {"network_mode": "none", "extra_hosts": {plan.host: "127.0.0.1"}}
    else:
        arguments["network_mode"] = own_network
        if plan.isolated:
            # The engine's own resolver answers for the peers. Whatever it does not know it would ask of
            # the host's name servers, some engines even from the host's side: here it asks nobody.
            arguments |= {"dns": ["127.0.0.1"], "dns_opt": ["timeout:1", "attempts:1"]}
    return arguments


def network_arguments(isolated: bool) -> dict[str, Any]:
    """Arguments of the engine's call that makes a job's own network.

    An internal network lets its hosts see each other. By itself it also lets them reach the host at
    the bridge's address, and through that all its services: so the bridge gets no address.
    """
    if not isolated:
        return {"driver": "bridge"}
    return {
        "driver": "bridge",
        "internal": True,
        "options": {"com.docker.network.bridge.inhibit_ipv4": "true"},
    }


def has_own_network(plan: ContainerPlan) -> bool:
    """Whether the plan asks for a network for this job alone."""
    return plan.network not in (None, "none")


def environment(plan: ContainerPlan, network: HostNetwork) -> Mapping[str, str]:
    """The plan's environment, added to what pip needs on this host. An isolated job gets no proxies."""
    if plan.isolated or plan.network == "none":
        network = HostNetwork(ca_bundle=network.ca_bundle)
    own = plan.environment if plan.keeper is None else plan.keeper.environment
    return {**network.job_environment(CA_BUNDLE_TARGET), **own}


def runs_as_root(user: str | None) -> bool:
    """Whether a ``uid:gid`` (None: the image's default) means root."""
    return user is None or user.split(":")[0] in ("", "0", "root")
