"""Stand-ins for modules that NxD Core (neuronx_distributed) and optimum-neuron import, so that these train here.

These libraries import NKI kernels and parts of the compiler at the top of their modules, whether a job uses them or
not. Only these two libraries can import the stand-ins; for a script the modules are missing. All names in them, except
`_THERE`, raise when they are used. An installed module comes before a stand-in of `_ABSENT`.

Source: AWS's repository neuronx-distributed, releases 2.26 and 2.29, and optimum-neuron 0.4.5, of which
`tests/container/test_nxd_core.py` plays a part.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections import defaultdict
from types import ModuleType
from typing import Any

from neuron_sim.compiler.cache_location import VERSION
from neuron_sim.device import flash_attention
from neuron_sim.device.nki import nki_jit
from neuron_sim.errors import NotSimulatedError
from neuron_sim.names.neuron_names import NKI

_LIBRARIES = ("neuronx_distributed", "optimum")
_COMPILED = "There is no compiler for the device here: run it on trn1 or inf2."
_ABSENT = {"neuronxcc": NKI, "nki": NKI, "nkilib": NKI}
_REPLACED = {f"{_LIBRARIES[0]}.trace": _COMPILED, f"{_LIBRARIES[0]}.modules.moe": NKI}
"""The library's own modules that cannot be imported: one needs C++ classes, the other values of its kernels."""


class CollectivesConfig:
    """NxD Core makes one with its process groups, and reads from it only values for ring attention's kernel."""

    def __init__(self, **_: object) -> None:
        """Takes any arguments."""
        self.rank_src_tgt_pairs: dict[int, None] = defaultdict(lambda: None)


_THERE: dict[str, Any] = {
    "CollectivesConfig": CollectivesConfig,
    "FlashConfig": flash_attention.FlashConfig,
    "flash_attn_bwd": flash_attention.flash_attn_bwd,
    "flash_fwd": flash_attention.flash_fwd,
    "jit": nki_jit,  # decorates kernels while the library is imported
    "nc": int,  # in a launch grid: the number of physical cores of a logical one
}
"""Names that can be used, and what they stand for."""


class _Module(ModuleType):
    """A module that has every name. Except for `_THERE`, each is a class to subclass and annotate; a call raises."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(name)
        self.__version__ = VERSION  # optimum-neuron 0.1 describes the compiler with it
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system looks these up
            raise AttributeError(name)
        if name in _THERE:
            return _THERE[name]
        feature, instead = f"{self.__name__}.{name}", self._instead

        def refused(*_: object, **__: object) -> None:
            raise NotSimulatedError(feature, instead)

        return type(name, (), {"__init__": refused, "__module__": self.__name__})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages: dict[str, str]) -> None:
        self._packages = packages

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if self._instead(fullname) is None or not _asked_by_library():
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name, self._instead(spec.name) or "")

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing."""

    def _instead(self, name: str) -> str | None:
        return next((text for top, text in self._packages.items() if f"{name}.".startswith(f"{top}.")), None)


def _asked_by_library() -> bool:
    """Whether the importing module belongs to one of `_LIBRARIES`."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib."):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES


def expect() -> None:
    """Make the stand-ins importable for `_LIBRARIES`. Idempotent."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(_REPLACED))
        sys.meta_path.append(_Finder(_ABSENT))
