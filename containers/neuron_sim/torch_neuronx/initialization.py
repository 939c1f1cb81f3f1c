"""Called by scripts that set torchrun's variables themselves, after the import of torch_xla."""

from __future__ import annotations

from neuron_sim.hooks import activation


def initialize() -> None:
    """Take over the rank and world size that the environment names now. Idempotent."""
    activation.initialize()
