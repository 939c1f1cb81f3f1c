"""The torch modules that exist, and their parameters.

Torch's own methods are called: a script's class may have a `parameters()` with other arguments or results.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from neuron_sim import live_objects


def parameters(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """The parameters of the module and its submodules, each once."""
    for _, parameter in torch.nn.Module.named_parameters(module):
        yield parameter


def live() -> list[torch.nn.Module]:
    """All modules that exist, except those whose `__init__` never called torch's, such as NxD Training's for DPO:
    torch's methods fail on them.
    """
    found = live_objects.live(torch.nn.Module.__subclasscheck__)
    return [module for module in found if "_modules" in vars(module)]
