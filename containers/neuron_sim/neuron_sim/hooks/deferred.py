"""Postpones the import of modules that torch_xla's own import would load, until they are first used.

torch_xla's import loads torch's compilers too, which takes 2.3 of its 3.1 seconds. Few scripts use them.
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
"""By module: the functions that torch_xla's other modules import from it."""


def compilers() -> Callable[[], None]:
    """Put stand-ins into `sys.modules` whose functions import the real module when called.

    Call before the import of torch_xla, and the returned function after it: that takes the stand-ins out of
    `sys.modules`. Modules that are imported already stay as they are.
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
    """Stands in for a module: has some of its functions, and imports it when asked for any other name."""

    def __init__(self, name: str, functions: tuple[str, ...]) -> None:
        super().__init__(name)
        for function in functions:
            setattr(self, function, _calling(name, function))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks these up
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


def _calling(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **keywords)

    call.__name__ = call.__qualname__ = name
    return call
