"""Compiles what a trial run has collected, for callers such as Ray Train that do not use the command of that name."""

from __future__ import annotations

from libneuronxla.neuron_cc_cache import CacheUrl
from neuron_sim.tools.neuron_parallel_compile import compile_collected

__all__ = ["parallel_compile"]


def parallel_compile(workdir: str, cache_url: CacheUrl) -> None:
    """Compile the graphs of a cache, and print how that went. Nothing is written to ``workdir`` here."""
    del workdir
    compile_collected(cache_url.url)
