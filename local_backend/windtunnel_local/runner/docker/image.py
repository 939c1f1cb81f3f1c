"""Build the training image, and tell whether the existing one is current."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal
from urllib.parse import urlsplit

import docker
import requests
from docker.errors import ImageNotFound

from windtunnel_local.runner.docker.base import ensure_base
from windtunnel_local.runner.docker.client import Engine, engine_errors, require_x86
from windtunnel_local.runner.docker.progress import REPORT_EVERY_S, BuildReport, with_ticks
from windtunnel_local.runner.docker.settings import DockerSettings
from windtunnel_local.runner.runner_kind import ImageStatus
from windtunnel_local.runner.sources import build_context, containers_folder, content_hash, cpu_wheels
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.service.ground.ports import Progress

CONTENT_LABEL = "windtunnel.content"
Target = Literal["training", "test"]

_INDEX_TIMEOUT_S = 3.0
_POLL_S = 0.1
_NO_NETWORK = (
    "Temporary failure resolving",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
)
"""Words of apt-get, pip and uv."""


def image_status(
    settings: DockerSettings, target: Target = "training", engine: Engine | None = None
) -> ImageStatus:
    """Compare the image with the sources. Reads the sources (milliseconds) and asks the engine once.

    Raises:
        RunnerUnavailable: no engine.
    """
    return status_of(image_tag(settings, target), content_hash(containers_folder()), engine)


def status_of(tag: str, expected: str, engine: Engine | None) -> ImageStatus:
    """Compare the content hash in an image's label with that of the sources now.

    Raises:
        RunnerUnavailable: no engine.
    """
    with connected(engine) as client:
        return _compared(client, tag, expected)


def _compared(client: docker.DockerClient, tag: str, expected: str) -> ImageStatus:
    with engine_errors(f"look for the image {tag}"):
        try:
            found = client.images.get(tag).attrs
        except ImageNotFound:
            return ImageStatus(tag, "missing", None, expected)
    content = (found["Config"].get("Labels") or {}).get(CONTENT_LABEL)
    state: Literal["stale", "current"] = "current" if content == expected else "stale"
    return ImageStatus(tag, state, content, expected, found["Id"], found["Size"], found["Created"])


def image_tag(settings: DockerSettings, target: Target = "training") -> str:
    """The tag a target is built under; the test image is the training image's with ``-test``."""
    if target == "training":
        return settings.image
    repository, separator, tag = settings.image.rpartition(":")
    return f"{repository}-test:{tag}" if separator and "/" not in tag else f"{settings.image}-test"


def build_image(
    settings: DockerSettings,
    progress: Progress,
    target: Target = "training",
    *,
    engine: Engine | None = None,
) -> ImageStatus:
    """Build the image unless it is current, and tag it.

    Blocks: minutes the first time, seconds from the engine's cache. Idempotent; builds on
    one machine wait for each other.

    Args:
        settings: the tag, the choice of base, and the host's CA bundle, package indexes and proxies.
        progress: gets a line a step.
        target: ``test`` adds what tests/container needs.
        engine: the connection; None: a new one.

    Raises:
        RunnerUnavailable: no engine.
        RunnerError: its processors are others than x86-64, or a step failed; carries its last lines and the next step.
    """
    with connected(engine) as client, build_lock(progress):
        require_x86(client)
        status = image_status(settings, target, engine)
        if status.state == "current":
            progress(f"{status.image} is current.")
            return status
        base = ensure_base(client, settings.base_image, progress)
        wheels = cpu_wheels(containers_folder(), settings.network.folders)
        arguments = _build_arguments(settings, progress)
        context = build_context(containers_folder(), settings.network.ca_bundle, wheels)
        progress(f"Building {status.image} on {base}")
        return run_build(client, status, {**arguments, "BASE_IMAGE": base}, context, progress, target)


def run_build(
    client: docker.DockerClient,
    wanted: ImageStatus,
    arguments: dict[str, str],
    context: IO[bytes],
    progress: Progress,
    target: Target | None = None,
) -> ImageStatus:
    """Build an image that is missing or stale, and remove the one that it replaces. Blocks for minutes.

    ``arguments``: build arguments; ``target``: a stage of the Dockerfile.

    Raises:
        RunnerError: a step failed; carries its last lines and the next step.
    """
    report = BuildReport(progress)
    error: str | None = None
    with engine_errors(f"build {wanted.image}"):
        # The engine's classic builder: every engine has it, and it needs no plugin on this side.
        # The network is the host's, so that its proxies on loopback and its resolver work.
        output = client.api.build(
            fileobj=context,
            custom_context=True,
            tag=wanted.image,
            target=target,
            buildargs=arguments,
            labels={CONTENT_LABEL: wanted.expected},
            network_mode="host",
            rm=True,
            forcerm=True,
            decode=True,
            timeout=None,
        )
        for message in with_ticks(output, every_s=5.0):
            if message is None:
                report.tick()
            elif "stream" in message:
                report.feed(message["stream"])
            elif "error" in message:
                error = message["error"]
    if error is not None:
        raise RunnerError(
            f"The image build failed: {error}\n{report.tail}\n{build_advice(error + report.tail, arguments)}"
        )
    _prune(client)
    status = _compared(client, wanted.image, wanted.expected)
    progress(f"{status.image} is ready ({(status.size_bytes or 0) / 1e9:.1f} GB).")
    return status


def build_advice(output: str, arguments: Mapping[str, str]) -> str:
    """What to do about a build that failed with these last lines. ``arguments``: of the build."""
    if "no space left" in output.lower():
        return "The disk of the Docker engine is full: free 8 GB (`docker system df`) and build again."
    if "CERTIFICATE_VERIFY_FAILED" in output or "UnknownIssuer" in output:
        return (
            "A proxy inspects TLS here: set SSL_CERT_FILE to a file with its CA certificate, "
            "then run `windtunnel image build` again."
        )
    if any(words in output for words in _NO_NETWORK):
        return (
            "The build reaches no network, which it needs once: look at this machine's connection and name server, "
            "or set HTTP_PROXY and HTTPS_PROXY where there is a proxy; then `windtunnel image build` again."
        )
    if "PIP_INDEX_URL" in arguments or "PIP_EXTRA_INDEX_URL" in arguments:
        return (
            "Check that PIP_INDEX_URL, PIP_EXTRA_INDEX_URL and WINDTUNNEL_TORCH_INDEX_URL answer; "
            "then `windtunnel image build` again."
        )
    return "Steps that succeeded are kept: run `windtunnel image build` again to go on from there."


def _build_arguments(settings: DockerSettings, progress: Progress) -> dict[str, str]:
    arguments = settings.network.build_arguments()
    url = settings.torch_index_url
    if url and index_answers(url, settings.network.ca_bundle):
        progress(f"torch: its CPU build, from {urlsplit(url).hostname}")
        extra = arguments.get("PIP_EXTRA_INDEX_URL", "")
        arguments["PIP_EXTRA_INDEX_URL"] = f"{url} {extra}".strip()
    elif url:
        progress(
            f"torch: {urlsplit(url).hostname} did not answer within {_INDEX_TIMEOUT_S:.0f} s; taking pip's"
        )
    return arguments


def index_answers(url: str, ca_bundle: Path | None = None, timeout_s: float = _INDEX_TIMEOUT_S) -> bool:
    """Whether a package index has a page for torch. Blocks for at most ``timeout_s``."""
    answers: list[bool] = []

    def ask() -> None:
        with contextlib.suppress(requests.RequestException, ValueError):
            page = f"{url.rstrip('/')}/torch/"
            verify = str(ca_bundle) if ca_bundle else True
            with requests.get(page, stream=True, timeout=timeout_s, verify=verify) as answer:
                answers.append(answer.ok)

    # In a thread: nothing else bounds how long a name is looked up.
    thread = threading.Thread(target=ask, name="index probe", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return answers == [True]


def _prune(client: docker.DockerClient) -> None:
    """Remove predecessors that lost their tag to a build, unless a container or image needs them; our label only."""
    with engine_errors("remove old training images"):
        client.images.prune(filters={"dangling": True, "label": CONTENT_LABEL})


@contextmanager
def connected(engine: Engine | None) -> Iterator[docker.DockerClient]:
    """The engine's client; a connection of its own where none is given."""
    if engine is not None:
        yield engine.client()
        return
    own = Engine()
    try:
        yield own.client()
    finally:
        own.close()


@contextmanager
def build_lock(progress: Progress) -> Iterator[None]:
    """A lock: one build at a time for this user on this machine, for all homes, because builds share layers.

    ``progress`` is called now and then while another one is waited for: a job that is stopped raises there.
    """
    path = Path(tempfile.gettempdir()) / f"windtunnel-image-{os.getuid()}.lock"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        next_word = time.monotonic()
        while not _took(descriptor):
            if time.monotonic() >= next_word:
                progress("Another build is running; waiting for it.")
                next_word = time.monotonic() + REPORT_EVERY_S
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _took(lock: int) -> bool:
    """Take the lock if it is free; whether it was."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
