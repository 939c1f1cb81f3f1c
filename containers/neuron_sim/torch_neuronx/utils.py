"""Functions by which scripts ask about the machine."""

from __future__ import annotations

from neuron_sim import settings


def get_platform_target() -> str:
    """The target for which neuronx-cc compiles on this instance: ``trn1`` on every trn1 and trn1n."""
    return settings.read().instance.compiler_targets[0]
