"""Names of a module that are found elsewhere when they are first used, or refused.

torch_xla imports torch_neuronx in the middle of its own import: what needs torch or
torch_xla must wait until somebody asks for it.
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
    """A module's ``__getattr__``: ``found`` is where a name is; what is refused the registry of names says.

    ``modules`` are those below it, which scripts also reach without importing them.

    A refused name can be imported, so that a script gets as far as its first use; using it
    raises NotSimulatedError. Any other name is no name of this module.
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
