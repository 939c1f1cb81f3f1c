"""The connection to the Docker engine, and its errors in the runner's words."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from urllib3.exceptions import HTTPError

from windtunnel_local.runner.docker import endpoint
from windtunnel_local.service.ground.errors import ImageNotFound, RunnerError, RunnerUnavailable

_REQUEST_TIMEOUT_S = 120
"""Creating a container on a busy disk can take long; no engine needs two minutes for it."""

_PROCESSOR = "amd64"
_CONFLICTS_OF_PODMAN = ("container state improper", "is already in use")
"""Which answers 500 to them."""


@dataclass(frozen=True)
class Kind:
    """How an engine differs from Docker run by root."""

    podman: bool
    rootless: bool
    """An ordinary user runs the engine. In its containers root is that user."""
    limits_memory: bool


class Engine:
    """A lazily opened connection, shared by all threads; it outlives restarts of the engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: docker.DockerClient | None = None
        self._kind: Kind | None = None

    def client(self) -> docker.DockerClient:
        """The client; the first call asks the engine for its API version. Raises `RunnerUnavailable`."""
        with self._lock:
            if self._client is None:
                with engine_errors("connect to the engine"):
                    arguments = endpoint.arguments()
                    _try_socket(arguments["base_url"])
                    self._client = docker.DockerClient(
                        **arguments, timeout=_REQUEST_TIMEOUT_S, max_pool_size=64
                    )
            return self._client

    @property
    def kind(self) -> Kind:
        """How it differs from Docker run by root. Asks the engine once. Raises `RunnerError`."""
        if self._kind is None:
            api = self.client().api
            with engine_errors("say what it is"):
                parts = {part["Name"] for part in api.version().get("Components") or ()}
                said = api.info()
            # Podman says it the first way, Docker the second.
            rootless = bool(said.get("Rootless") or "name=rootless" in (said.get("SecurityOptions") or ()))
            # Podman claims that it does, also where no user may: with cgroups of version 1.
            limits = said.get("MemoryLimit", True) and not (rootless and said.get("CgroupVersion") == "1")
            self._kind = Kind("Podman Engine" in parts, rootless, limits)
        return self._kind

    @property
    def known(self) -> bool:
        """Whether the engine has ever answered."""
        return self._client is not None

    def close(self) -> None:
        """Close the connection. Idempotent; the next `client` opens it again."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None


def _try_socket(url: str) -> None:
    """Connect to the engine's Unix socket, if it has one: docker-py leaks a socket when nobody answers."""
    path = url.removeprefix("http+").removeprefix("unix://")
    if path == url:
        return
    with socket.socket(socket.AF_UNIX) as knock:
        try:
            knock.connect(path)
        except OSError as error:
            raise unavailable(error) from error


@contextmanager
def engine_errors(action: str) -> Iterator[None]:
    """Turn whatever docker-py raises inside into a `RunnerError` that names ``action`` and the fix."""
    try:
        yield
    except APIError as error:
        raise RunnerError(f"Docker could not {action}: {error.explanation or error}") from error
    except (DockerException, requests.RequestException, HTTPError) as error:
        raise unavailable(error) from error


def require_x86(client: docker.DockerClient) -> None:
    """Refuse an engine of other processors. Asks it once.

    Raises:
        RunnerError: it is one; says what to do instead.
    """
    with engine_errors("say what it runs on"):
        processor = client.version().get("Arch", _PROCESSOR)
    if processor != _PROCESSOR:
        raise RunnerError(
            f"The Docker engine at {endpoint.address()} is one of {processor}, for which there is no torch_xla: the "
            "training image needs x86-64. On a Mac: `colima start --arch x86_64` makes such an engine, emulated and "
            "slow. Or run Windtunnel on a Linux machine with x86-64 processors."
        )


def run_in(api: docker.APIClient, container: str, command: Sequence[str], user: str = "") -> tuple[int, str]:
    """Run a command in a running container; its exit code, and what it printed. Docker's errors are the caller's."""
    made = api.exec_create(container, list(command), user=user)
    said = bytes(api.exec_start(made["Id"])).decode(errors="replace")
    return int(api.exec_inspect(made["Id"])["ExitCode"] or 0), said


@contextmanager
def unless_gone() -> Iterator[None]:
    """Ignore errors which say that the object of a call is gone, is being removed, or does not run."""
    try:
        yield
    except NotFound:
        pass
    except APIError as error:
        if not is_conflict(error):
            raise


def is_conflict(error: APIError) -> bool:
    """Whether a name is taken, or a container in another state than the call needs."""
    return error.status_code == requests.codes.conflict or any(
        words in str(error.explanation) for words in _CONFLICTS_OF_PODMAN
    )


def unavailable(error: Exception) -> RunnerUnavailable:
    """The engine cannot be reached: say why, and what to do about it."""
    text = str(error)
    docker_is_here = shutil.which("dockerd") or shutil.which("docker")
    if endpoint.address().startswith("ssh://"):
        fix = (
            f"the engine at {endpoint.address()} is another machine's, which does not see the files of this one. Run"
            " Windtunnel there, or set DOCKER_HOST to an engine of this machine"
        )
    elif isinstance(error, PermissionError) or "PermissionError" in text or "Permission denied" in text:
        fix = (
            "this user may not use the engine's socket. Run `sudo usermod -aG docker $USER` and log in "
            "again, or set DOCKER_HOST to an engine of your own"
        )
    elif not docker_is_here and shutil.which("podman"):
        fix = (
            f"no engine answers at {endpoint.address()}. Start Podman's (`systemctl --user start podman.socket`;"
            " without systemd: `podman system service --time=0 &`), and set"
            " DOCKER_HOST=unix://$XDG_RUNTIME_DIR/podman/podman.sock, for root unix:///run/podman/podman.sock"
        )
    elif not docker_is_here:
        fix = (
            "Docker is not installed here. Install it (`sudo apt-get install docker.io`), set DOCKER_HOST to "
            "an engine elsewhere, or run jobs without containers with WINDTUNNEL_RUNNER=process"
        )
    else:
        fix = (
            f"no engine answers at {endpoint.address()}. Start it (`sudo systemctl start docker`; without an init "
            "system: `sudo dockerd &`). If it listens elsewhere, set DOCKER_HOST, and end the backend "
            "that was started with another: `windtunnel down`"
        )
    return RunnerUnavailable(f"Cannot reach Docker: {fix}. ({_brief(text)})")


def image_not_found(name: str) -> ImageNotFound:
    """The engine has no such image: say where to get it."""
    return ImageNotFound(
        f"ClientError: The Docker engine has no image {name}. Pull it (`docker pull {name}`), build it "
        f"(`docker build -t {name} .`), or name one of AWS's Neuron training images "
        "(pytorch-training-neuronx), for which Windtunnel's own runs."
    )


def _brief(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."
