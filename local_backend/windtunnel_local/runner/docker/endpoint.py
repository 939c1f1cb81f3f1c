"""Find the engine that the docker command would use."""

from __future__ import annotations

import os
from typing import Any

from docker.constants import DEFAULT_UNIX_SOCKET
from docker.context import Context, ContextAPI
from docker.context.config import get_current_context_name
from docker.utils import kwargs_from_env

from windtunnel_local.service.ground.errors import RunnerUnavailable

_DEFAULT = "default"


def address() -> str:
    """The engine's address, as DOCKER_HOST has it. Raises `RunnerUnavailable`: the context in use cannot be read."""
    return _host(_context())


def arguments() -> dict[str, Any]:
    """Arguments of docker-py's client for that engine. docker-py's `from_env` knows contexts only from 7.2 on, and
    takes a missing context for the default.

    Raises:
        RunnerUnavailable: the context in use cannot be read.
        DockerException: the certificates that DOCKER_TLS_VERIFY and DOCKER_CERT_PATH ask for are not there.
    """
    context = _context()
    tls = kwargs_from_env().get("tls") if context is None else context.TLSConfig
    return {"base_url": _host(context), "tls": tls}


def _host(context: Context | None) -> str:
    host = os.environ.get("DOCKER_HOST") if context is None else context.endpoints["docker"]["Host"]
    return host or DEFAULT_UNIX_SOCKET.removeprefix("http+")


def _context() -> Context | None:
    """The context in use; None: the default one, set by environment variables. DOCKER_HOST wins over contexts."""
    name = os.environ.get("DOCKER_CONTEXT") or get_current_context_name() or _DEFAULT
    if os.environ.get("DOCKER_HOST") or name == _DEFAULT:
        return None
    reason = "there is none of this name"
    try:
        found: Context | None = ContextAPI.get_context(name)
    except Exception as error:  # noqa: BLE001  docker-py raises nothing narrower for a file that it cannot read
        found, reason = None, str(error)
    if found is not None and not found.endpoints.get("docker", {}).get("Host"):  # of Kubernetes, say
        found, reason = None, "it names no Docker engine"
    if found is None:
        raise RunnerUnavailable(
            f"Cannot reach Docker: its context {name!r}, chosen by DOCKER_CONTEXT or `docker context use`, cannot be"
            f" read: {reason}. Choose one that `docker context ls` lists with `docker context use NAME`, or set"
            " DOCKER_HOST."
        )
    return found
