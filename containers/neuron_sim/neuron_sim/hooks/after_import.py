"""Call a function right after a module has been imported, whoever imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType


def after_import(name: str, then: Callable[[], None]) -> None:
    """Call ``then`` once, right after the first import of the module ``name``, which is still to come."""
    sys.meta_path.insert(0, _Afterwards(name, then))


class _Afterwards(importlib.abc.MetaPathFinder):
    """A finder that finds nothing itself, but wraps the loader of one module."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        # Other finders of this class may wrap the loader too: several can wait for one module.
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._then()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
