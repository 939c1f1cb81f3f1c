"""The torch modules that exist, the modules within them, and their parameters.

None of a module's own methods is called: a script's class may have a `parameters()` or `named_modules()` with other
arguments or results.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from neuron_sim import live_objects


def parameters(module: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """The parameters of the module and its submodules, each once."""
    for _, parameter in named_parameters(module):
        yield parameter


def named_parameters(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters of the module and its submodules, each once, with its first name."""
    seen: set[int] = set()
    for name, parameter in _parameters(named_modules(module)):
        if id(parameter) not in seen:
            seen.add(id(parameter))
            yield name, parameter


def every_place(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """Each name within the module with its parameter: tied ones have several."""
    return _parameters(_places(module, "", None))


def named_modules(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The module, which has no name, and its submodules, each once, with its first name."""
    return _places(module, "", set())


def children(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules right within the module, with their names there."""
    for name, child in getattr(module, "_modules", {}).items():
        if child is not None:
            yield name, child


def live() -> list[torch.nn.Module]:
    """All modules that exist, except those whose `__init__` never called torch's, such as NxD Training's for DPO."""
    found = live_objects.live(torch.nn.Module.__subclasscheck__)
    return [module for module in found if "_modules" in vars(module)]


def _parameters(
    modules: Iterator[tuple[str, torch.nn.Module]],
) -> Iterator[tuple[str, torch.nn.Parameter]]:
    for prefix, module in modules:
        for name, parameter in getattr(module, "_parameters", {}).items():
            if parameter is not None:
                yield _within(prefix, name), parameter


def _places(
    module: torch.nn.Module, name: str, seen: set[int] | None
) -> Iterator[tuple[str, torch.nn.Module]]:
    """``seen``: modules that are left out; None: none, so that a shared module comes once for each of its places."""
    if seen is not None:
        if id(module) in seen:
            return
        seen.add(id(module))
    yield name, module
    for part, child in children(module):
        yield from _places(child, _within(name, part), seen)


def _within(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
