"""What scripts ask about the machine."""

from __future__ import annotations

from neuron_sim import settings


def get_platform_target() -> str:
    """What neuronx-cc compiles for here: ``trn1`` on every trn1 and trn1n instance."""
    return settings.read().instance.compiler_targets[0]
