"""Makes modules that are imported already look unimported, until the script imports them.

An import has side effects. torch_xla's gives the root logger a handler, after which a script's
`logging.basicConfig(...)` changes nothing; it sets variables, and it makes the process a core. As on trn1, a
script may set its logging and its variables before that.
"""

from __future__ import annotations

import copy
import importlib.abc
import sys
from collections.abc import Callable, Collection, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def modules_of(packages: Collection[str]) -> list[str]:
    """The names of all imported modules of these packages."""
    below = tuple(f"{package}." for package in packages)
    return [name for name in sys.modules if name in packages or name.startswith(below)]


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Hides imported modules; the first import of one of them brings all back."""

    def __init__(self, names: Iterable[str], then: Callable[[], None]) -> None:
        """Take them out of `sys.modules`. ``then`` is called when an import has brought them back."""
        self._modules: dict[str, Any] = {name: sys.modules.pop(name) for name in names}
        self._then = then
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The module's own spec, with this object as the loader."""
        if fullname not in self._modules:
            return None
        spec = copy.copy(self._modules[fullname].__spec__)
        spec.loader = self
        return spec  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:  # noqa: ARG002 - the import system's signature
        """Bring all back. The import system then takes the module from `sys.modules`, and drops ``module``."""
        self.bring_back()
        self._then()

    def bring_back(self) -> None:
        """Put the modules back into `sys.modules`. Idempotent."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            sys.modules.update(self._modules)
