"""The compile cache, under the names by which public code reaches it: its address, and the folders of entries.

The simulator itself (`neuron_sim.compiler.cache`) looks up graphs and adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import settings
from neuron_sim.compiler import cache_location, flags

__all__ = ["CacheUrl", "CompileCache", "CompileCacheFs", "CompileCacheS3", "create_compile_cache"]


@dataclass(frozen=True)
class CacheUrl:
    """The address of a cache: a path, or ``s3://bucket/prefix``. ``url_type`` ("fs", "s3") is ignored here."""

    url: str
    url_type: str = ""

    @classmethod
    def get_cache_url(cls, cache_dir: str | None = None) -> CacheUrl:
        """The cache that the environment names, or ``cache_dir``.

        Raises:
            NeuronSimError: the environment names none that can be used.
        """
        wish = settings.compiler_wish()
        chosen = cache_dir or flags.asked(wish).cache_dir
        return cls(cache_location.resolve(chosen, wish).url)

    def is_s3(self) -> bool:
        """Whether the cache is in S3."""
        return self.url.startswith("s3://")


class CompileCache:
    """A compile cache at an address. It finds and writes files; graphs are left to the simulator."""

    def __init__(self, cache_url: CacheUrl) -> None:
        """See `create_compile_cache`."""
        self.cache_url = cache_url
        self._location = cache_location.resolve(cache_url.url, settings.compiler_wish())
        self.cache_path = self._location.shown(self._location.entries)
        """The address of the folder of this compiler's entries. optimum-neuron's hub cache replaces it."""

    def get_cache_dir(self, model_hash: int | str, compiler_flags: Sequence[str]) -> tuple[str, str]:
        """(address of an entry's folder, its key) for a graph's hash and the compiler's flags."""
        key = f"MODULE_{model_hash}+{flags.flags_hash(tuple(compiler_flags))}"
        return self.get_cache_dir_with_cache_key(key), key

    def get_cache_dir_with_cache_key(self, cache_key: str) -> str:
        """The address of a key's folder; optimum-neuron also uses a key of its own, for trained models."""
        return f"{self.cache_path}/{cache_key}"

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists at an address in this cache."""
        return self._file(path).exists()

    def upload_string_to_file(self, cache_path: str, data: str) -> None:
        """Write a file at an address in this cache."""
        file = self._file(cache_path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(data)

    def _file(self, address: str) -> Path:
        return Path(self._location.folder, address.removeprefix(self._location.url.rstrip("/")).lstrip("/"))


class CompileCacheFs(CompileCache):
    """A cache in a folder."""


class CompileCacheS3(CompileCache):
    """A cache in S3, of which Windtunnel keeps a copy in the container."""


def create_compile_cache(cache_url: CacheUrl) -> CompileCache:
    """The cache at an address.

    Raises:
        NeuronSimError: the address is neither a path nor ``s3://bucket/...``.
    """
    return CompileCacheS3(cache_url) if cache_url.is_s3() else CompileCacheFs(cache_url)
