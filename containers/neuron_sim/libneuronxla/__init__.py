"""Stands in for AWS's Neuron plug-in, so that torch_xla finds a Neuron device.

It has the names that torch_xla and public Trainium scripts use; any other raises NotSimulatedError.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from libneuronxla.neuron_cc_cache import create_compile_cache
from neuron_sim import __version__
from neuron_sim.errors import NotSimulatedError

SnapshotCallback = Callable[[str, int, int], str]
"""(graph's name, device's index, count of executions) -> which tensors to save: "inputs", "outputs", both or ""."""

__all__ = ["__version__", "configure_environment", "create_compile_cache", "register_hlo_snapshot_callback"]

_callback: SnapshotCallback | None = None


def configure_environment() -> None:
    """Prepare the environment of the plug-in. The simulator needs nothing here."""


def register_hlo_snapshot_callback(callback: SnapshotCallback | None) -> SnapshotCallback | None:
    """Register the function that decides which executions leave a snapshot; returns the previous one.

    No snapshot is written here, so the function is never called: a warning says so. AWS Neuron
    documentation, "How to debug models in PyTorch NeuronX", section on snapshots.
    """
    global _callback
    previous, _callback = _callback, callback
    if callback is not None:
        warnings.warn(
            "libneuronxla.register_hlo_snapshot_callback: Windtunnel's NeuronCores write no HLO snapshots, so the"
            " callback is never called.",
            stacklevel=2,
        )
    return previous


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSimulatedError(f"libneuronxla.{name}")
