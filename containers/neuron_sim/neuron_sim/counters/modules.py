"""A model's parameters, asked of torch: a script's own class may have a `parameters()` that takes or gives others."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def parameters(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """Of the module and all within it, each once."""
    for _, parameter in torch.nn.Module.named_parameters(module):
        yield parameter
