"""torch_xla calls `init` in the middle of its own import when it finds a Neuron device."""

from __future__ import annotations

from neuron_sim.hooks import activation


def init() -> None:
    """Make this process a simulated NeuronCore."""
    activation.on_import()
