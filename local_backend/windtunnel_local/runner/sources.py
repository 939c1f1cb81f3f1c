"""Where the sources of the training image are, and what identifies them."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path
from urllib.parse import unquote

from windtunnel_local.service.ground.errors import RunnerError

_INPUTS = "build-inputs"
_IGNORED_FOLDERS = frozenset(
    {
        "__pycache__",
        "build",
        _INPUTS,
        "dist",
        ".hypothesis",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)
_IGNORED_SUFFIXES = (".pyc", ".egg-info", ".swp")
_SAID = {"torch": "PyTorch", "torch_xla": "torch_xla", "transformers": "transformers"}


@lru_cache(maxsize=1)
def containers_folder() -> Path:
    """The folder with ``training/`` and ``neuron_sim/``: inside an installed wheel, else in the checkout."""
    package = Path(str(resources.files("windtunnel_local")))
    for folder in (package / "_containers", package.parent.parent / "containers"):
        if (folder / "training" / "Dockerfile").is_file():
            return folder
    raise RunnerError(
        f"The sources of the training image are missing: no {package / '_containers/training/Dockerfile'}. "
        "Reinstall windtunnel, or install it from a checkout with `pip install -e .`."
    )


def image_files(containers: Path) -> Iterator[tuple[str, Path]]:
    """Every file of the build context as (name in the context, file), in a fixed order.

    ``training/`` becomes the context's root, with ``neuron_sim/`` beside its files.
    """
    yield from source_files(containers / "training")
    yield from source_files(containers / "neuron_sim", "neuron_sim/")


def source_files(root: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Every source file below a folder as (``prefix`` and its path there, file), in a fixed order."""
    for path in sorted(root.rglob("*"), key=lambda p: p.relative_to(root).as_posix()):
        relative = path.relative_to(root)
        ignored = any(part in _IGNORED_FOLDERS or part.endswith(_IGNORED_SUFFIXES) for part in relative.parts)
        if path.is_file() and not ignored:
            yield prefix + relative.as_posix(), path


def content_hash(containers: Path) -> str:
    """Identifies the image's sources.

    What depends on the host (its CA bundle, its package index) is no part of it.
    """
    return hash_of(image_files(containers))


def hash_of(files: Iterable[tuple[str, Path]]) -> str:
    """16 hex digits over names, executable bits and bytes."""
    digest = hashlib.sha256()
    for name, path in files:
        data = path.read_bytes()
        executable = int(bool(path.stat().st_mode & 0o100))
        digest.update(f"{name}\0{executable}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


def image_contents(containers: Path) -> str:
    """The versions that scripts ask for, as the image's sources pin them: ``PyTorch 2.9.0, ...``."""
    versions = pinned(containers)
    return ", ".join(f"{label} {versions[name]}" for name, label in _SAID.items() if name in versions)


def cpu_wheels(containers: Path, folders: Iterable[Path]) -> list[Path]:
    """CPU builds of what the image pins, from folders of wheels and package indexes in folders."""
    versions = pinned(containers)
    wanted = "|".join(
        rf"{name}-{re.escape(version)}\+cpu-cp311-\S+x86_64\.whl" for name, version in versions.items()
    )
    files = [file for folder in folders for file in folder.glob("*.whl")]
    for page in (folder / name / "index.html" for folder in folders for name in versions):
        if page.is_file():
            links = re.findall(r'href="([^"#:]+)', page.read_text(errors="replace"))
            files += [page.parent / unquote(link) for link in links]
    return sorted({file.resolve() for file in files if re.fullmatch(wanted, file.name) and file.is_file()})


def pinned(containers: Path) -> dict[str, str]:
    lines = (containers / "training" / "requirements.txt").read_text().splitlines()
    pins = (line.partition("==") for line in lines)
    return {name: version for name, pinned, version in pins if pinned}


def build_context(containers: Path, ca_bundle: Path | None, wheels: Iterable[Path] = ()) -> io.BytesIO:
    """The training image's build context: its sources, and what the host hands over."""
    inputs = [(f"{_INPUTS}/ca-bundle.crt", ca_bundle.read_bytes() if ca_bundle else b"")]
    return context_of(
        image_files(containers),
        inputs + [(f"{_INPUTS}/{wheel.name}", wheel.read_bytes()) for wheel in wheels],
    )


def context_of(files: Iterable[tuple[str, Path]], inputs: Iterable[tuple[str, bytes]] = ()) -> io.BytesIO:
    """A build context as a tar: the same bytes whatever the checkout's owner, umask or age.

    The engine's layer cache compares names, modes and owners, so a fresh clone
    must not look different.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, path in files:
            executable = path.stat().st_mode & 0o100
            _add(tar, name, path.read_bytes(), 0o755 if executable else 0o644)
        for name, data in inputs:
            _add(tar, name, data, 0o644)
    buffer.seek(0)
    return buffer


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))
