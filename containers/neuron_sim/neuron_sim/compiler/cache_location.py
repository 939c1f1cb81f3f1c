"""Where the compile cache is.

``--cache_dir`` in NEURON_CC_FLAGS beats NEURON_COMPILE_CACHE_URL beats
/var/tmp/neuron-compile-cache (AWS Neuron documentation, "Neuron Persistent Cache").

An ``s3://`` cache has a folder here: a container has no way to an object store, so the
backend fills that folder before the job and stores what is new in it afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import __version__
from neuron_sim.errors import NeuronSimError
from neuron_sim.settings import CompilerWish

VERSION = f"{__version__}+simulated"
"""The simulated compiler's version. No release of neuronx-cc has it, so that their entries and ours never mix."""

COMPILER = f"neuronxcc-{VERSION}"
"""The folder of one compiler's entries."""


@dataclass(frozen=True)
class Location:
    """The cache of one process. ``url`` is its name in the log, ``folder`` where its files are."""

    url: str
    folder: Path
    note: str = ""

    @property
    def entries(self) -> Path:
        """The folder of this compiler's entries."""
        return self.folder / COMPILER

    def shown(self, path: Path) -> str:
        """The address of a file of the cache, which begins with the cache's ``url``."""
        return f"{self.url.rstrip('/')}/{path.relative_to(self.folder).as_posix()}"


def resolve(cache_dir: str | None, wish: CompilerWish) -> Location:
    """Where the cache is, by flag, by variable or by default.

    Raises:
        NeuronSimError: a URL that is neither a path nor ``s3://bucket/...``.
    """
    url = cache_dir or wish.cache_url or str(wish.default_cache)
    if not url.startswith("s3://"):
        scheme, separator, _ = url.partition("://")
        if separator and scheme != "file":
            raise NeuronSimError(
                f"The compile cache {url!r} is neither a path nor s3://bucket/prefix. Change --cache_dir in"
                " NEURON_CC_FLAGS, or NEURON_COMPILE_CACHE_URL."
            )
        path = Path(url.removeprefix("file://")).expanduser()
        return Location(url.removeprefix("file://"), path if path.is_absolute() else path.absolute())
    parts = [part for part in url.removeprefix("s3://").split("/") if part]
    if not parts or ".." in parts or "." in parts:
        raise NeuronSimError(
            f"The compile cache {url!r} names no bucket: it must look like s3://bucket/prefix."
        )
    if wish.s3_folder is not None and (wish.s3_folder / parts[0]).is_dir():
        return Location(url, wish.s3_folder.joinpath(*parts))
    note = (
        f"{url} was not brought into this container, so {wish.default_cache} is used in its place and is gone with"
        " the container. Windtunnel brings an S3 cache in when the job's environment names it"
        " (NEURON_COMPILE_CACHE_URL, or --cache_dir in NEURON_CC_FLAGS), not when the script does."
    )
    return Location(str(wish.default_cache), wish.default_cache, note)


def tell(where: Location, wish: CompilerWish) -> None:
    """Let `neuron_parallel_compile` know that its trial run uses this cache: a script may name one by itself."""
    # The folder is gone if a process outlives the script.
    if wish.trial_caches is not None and wish.trial_caches.parent.is_dir():
        with wish.trial_caches.open("a", encoding="utf-8") as file:
            file.write(json.dumps([where.url, str(where.folder)]) + "\n")


def told(path: Path) -> Iterator[Location]:
    """The caches that a trial run has used, each once."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for url, folder in dict(map(json.loads, lines)).items():
        yield Location(url, Path(folder))
