"""What modules there are, and their parameters.

Torch is asked: a script's own class may have a `parameters()` that takes or gives others.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from neuron_sim import live_objects


def parameters(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """Of the module and all within it, each once."""
    for _, parameter in torch.nn.Module.named_parameters(module):
        yield parameter


def live() -> list[torch.nn.Module]:
    """All modules that exist. Not one whose own `__init__` never called torch's, as NxD Training's for DPO: it has no
    members, and can't be asked.
    """
    found = live_objects.live(torch.nn.Module.__subclasscheck__)
    return [module for module in found if "_modules" in vars(module)]
