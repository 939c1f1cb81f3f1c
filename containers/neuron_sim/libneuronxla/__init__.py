"""Stands where AWS's Neuron plug-in stands, so that torch_xla finds a Neuron device.

Only what torch_xla itself asks for; everything else is refused by name.
"""

from __future__ import annotations

from typing import Any

from neuron_sim import __version__
from neuron_sim.errors import NotSimulatedError

__all__ = ["__version__", "configure_environment"]


def configure_environment() -> None:
    """Prepare the environment of the plug-in. The simulator needs nothing here."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSimulatedError(f"libneuronxla.{name}")
