"""Resolves a module's names at their first use: to a module of the simulator, or to a refusal.

torch_xla imports torch_neuronx in the middle of its own import, so modules that need
torch or torch_xla are imported only when a name of theirs is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from neuron_sim import names
from neuron_sim.errors import NotSimulatedError, refusal


def resolver(
    module: str, found: Mapping[str, str] | None = None, modules: Collection[str] = ()
) -> Callable[[str], Any]:
    """Make a module's ``__getattr__``. ``found``: the module in which each name is found.

    ``modules``: submodules, which scripts also reach without importing them. The registry `names` says what is refused.

    A refused name can be imported, so that a script gets as far as its first use; using it
    raises NotSimulatedError. Any other name raises it at once.
    """
    refused = {
        entry.name: entry.refused for entry in names.every() if entry.module == module and entry.refused
    }

    def resolve(name: str) -> Any:
        if found and name in found:
            return getattr(importlib.import_module(found[name]), name)
        if name in modules:
            return importlib.import_module(f"{module}.{name}")
        if name in refused:
            return refusal(f"{module}.{name}", refused[name])
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotSimulatedError(f"{module}.{name}")

    return resolve
