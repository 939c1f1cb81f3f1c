"""Modules that are imported when something of theirs is first used, and not by torch_xla's own import.

torch_xla's import brings torch's compilers along: 2.3 of its 3.1 seconds. Few scripts use them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_FUNCTIONS = {
    # For torch_xla.experimental.scan, which nn.GRU on the device uses.
    "functorch.compile": ("aot_function", "default_partition", "make_boxed_func"),
    "torch_xla.stablehlo": ("save_as_stablehlo", "save_torch_model_as_stablehlo"),
}
"""By module: what torch_xla's other modules take from it while they are imported."""


def compilers() -> Callable[[], None]:
    """Before the import of torch_xla: its modules get functions that import what they need when called.

    Returns what ends this, for after that import. What is imported already stays as it is.
    """
    stand_ins = {
        name: _Deferred(name, functions) for name, functions in _FUNCTIONS.items() if name not in sys.modules
    }
    sys.modules.update(stand_ins)

    def end() -> None:
        for name, stand_in in stand_ins.items():
            del sys.modules[name]
            parent, _, attribute = name.rpartition(".")
            setattr(importlib.import_module(parent), attribute, stand_in)

    return end


class _Deferred(ModuleType):
    """A module that is not imported yet: its functions and, once that import is over, all else of it."""

    def __init__(self, name: str, functions: tuple[str, ...]) -> None:
        super().__init__(name)
        for function in functions:
            setattr(self, function, _calling(name, function))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system's questions
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def _calling(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **keywords)

    call.__name__ = call.__qualname__ = name
    return call
