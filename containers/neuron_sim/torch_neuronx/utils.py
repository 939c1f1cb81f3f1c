"""What scripts ask about the machine."""

from __future__ import annotations

from neuron_sim import settings


def get_platform_target() -> str:
    """What neuronx-cc compiles for here: ``trn1`` on every trn1 and trn1n instance."""
    family = settings.read().instance_type.removeprefix("ml.").partition(".")[0]
    return family.removesuffix("n") if family.startswith("trn") else family
