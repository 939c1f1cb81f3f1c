"""The base of the training image: pulled from a registry, or made here if none can be reached."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import docker
from docker.errors import ImageNotFound

from windtunnel_local.runner.docker.client import engine_errors
from windtunnel_local.runner.sources import containers_folder
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.service.ground.ports import Progress

REGISTRY_BASE = "debian:bookworm-slim"
LOCAL_BASE = "windtunnel-base:bookworm"

_APT_SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))


def ensure_base(client: docker.DockerClient, configured: str | None, progress: Progress) -> str:
    """The name of a base image that the engine has. Blocks for a pull, or half a minute of mmdebstrap.

    Raises:
        RunnerError: neither a registry nor mmdebstrap can provide one; the message names the fix.
    """
    choice = choose_base(configured, lambda name: _has_image(client, name))
    if choice is not None:
        return choice
    progress(f"Base image: pulling {REGISTRY_BASE}")
    try:
        with engine_errors(f"pull {REGISTRY_BASE}"):
            repository, tag = REGISTRY_BASE.split(":")
            client.api.pull(repository, tag)
        return REGISTRY_BASE
    except RunnerError as error:
        progress(
            f"Base image: no registry can be reached ({str(error).splitlines()[0]}); making one with mmdebstrap"
        )
        make_base(client, progress, pull_error=error)
        return LOCAL_BASE


def choose_base(configured: str | None, has_image: Callable[[str], bool]) -> str | None:
    """The base image that the engine has already, or None: it must be pulled or made.

    An image that is there is preferred to a pull: the engine's cache then has the layers above it,
    and no network is needed.
    """
    if configured:
        return configured
    return next((name for name in (REGISTRY_BASE, LOCAL_BASE) if has_image(name)), None)


def make_base(client: docker.DockerClient, progress: Progress, pull_error: RunnerError) -> None:
    """Make a minimal Debian with the image's own packages, and import it as `LOCAL_BASE`. Half a minute."""
    if shutil.which("mmdebstrap") is None:
        raise RunnerError(
            f"{pull_error} Without a registry the base image is made here, which needs mmdebstrap: "
            f"run `sudo apt-get install mmdebstrap`, then `windtunnel image build`; or load "
            f"{REGISTRY_BASE} by hand (`docker load`), or name an image of yours in WINDTUNNEL_BASE_IMAGE."
        ) from pull_error
    # Not below /tmp, which may be in memory, or forbid the devices that a system has.
    with tempfile.TemporaryDirectory(prefix="windtunnel-base-", dir="/var/tmp") as folder:
        system = Path(folder) / "system.tar"
        _mmdebstrap(system, debian_mirror(_apt_sources_text()), progress)
        progress(f"Base image: importing it as {LOCAL_BASE}")
        with engine_errors(f"import {LOCAL_BASE}"):
            repository, tag = LOCAL_BASE.split(":")
            client.api.import_image_from_file(str(system), repository=repository, tag=tag)


def debian_mirror(sources: str) -> str | None:
    """The host's own mirror of Debian's main archive from the text of its apt sources; None if it has none.

    Takes both one-line (``deb [options] URL suite ...``) and deb822 (``URIs: URL``) entries.
    Plain http first: a new system has no CA certificates yet.
    """
    found: list[str] = []
    for line in sources.splitlines():
        entry = re.match(r"\s*(?:deb\s+(?:\[[^]]*\]\s*)?|URIs:\s*)(.*)", line)
        words = entry.group(1).split() if entry else []
        found += [w for w in words if re.fullmatch(r"https?://\S+/debian/?", w)]
    return next((url for url in found if url.startswith("http:")), found[0] if found else None)


def mmdebstrap_command(
    target: Path, mirror: str | None, packages: Sequence[str], *, as_root: bool
) -> list[str]:
    """What makes ``target``, an archive; it unpacks the system beside it, or, for others than root, beside its folder.

    As another user mmdebstrap works in a user namespace, whose root may not enter a folder of mode 0700.
    """
    folder = target.parent if as_root else target.parent.parent
    options = ["--variant=minbase", f"--include={','.join(packages)}"]
    options += [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "locale", "man")]
    command = ["env", f"TMPDIR={folder}", "mmdebstrap", *options, "bookworm", str(target)]
    return [*command, mirror] if mirror else command


def mmdebstrap_advice(output: str, mirror: str | None) -> str:
    """What to do about an mmdebstrap that failed with these last lines."""
    if "unable to pick chroot mode" in output:
        return (
            "As a user other than root it needs newuidmap: run `sudo apt-get install uidmap`. Or run "
            "`windtunnel image build` once as root, or name an image in WINDTUNNEL_BASE_IMAGE."
        )
    return (
        f"Check that the Debian mirror {mirror or '(the default)'} can be reached, or name an image in "
        "WINDTUNNEL_BASE_IMAGE."
    )


def _mmdebstrap(target: Path, mirror: str | None, progress: Progress) -> None:
    packages = (containers_folder() / "training" / "debian-packages.txt").read_text().split()
    command = mmdebstrap_command(target, mirror, packages, as_root=os.geteuid() == 0)
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
        for line in run.stdout:
            lines.append(line.rstrip())
            if phase := re.match(r"I: ((?:downloading|extracting|installing|creating)[^.]*)", line):
                progress(f"Base image: {phase[1].rstrip()}")
    if run.returncode:
        tail = "\n".join(lines[-10:])
        raise RunnerError(
            f"mmdebstrap failed with exit code {run.returncode}:\n{tail}\n{mmdebstrap_advice(tail, mirror)}"
        )


def _apt_sources_text() -> str:
    files: list[Path] = []
    for place in _APT_SOURCES:
        files += sorted(place.iterdir()) if place.is_dir() else [place]
    return "\n".join(
        f.read_text(errors="replace") for f in files if f.suffix in (".list", ".sources") and f.is_file()
    )


def _has_image(client: docker.DockerClient, name: str) -> bool:
    with engine_errors(f"look for the image {name}"):
        try:
            client.images.get(name)
        except ImageNotFound:
            return False
    return True
