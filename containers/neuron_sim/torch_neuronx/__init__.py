"""Stands where AWS's torch_neuronx stands. What is not simulated is refused by name."""

from __future__ import annotations

from typing import Any

from neuron_sim import __version__
from neuron_sim.errors import NotSimulatedError

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSimulatedError(f"torch_neuronx.{name}")
