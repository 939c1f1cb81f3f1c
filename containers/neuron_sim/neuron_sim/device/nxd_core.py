"""What NxD Core (neuronx_distributed) and optimum-neuron import and find nowhere else: so their training runs here.

Their modules name NKI kernels and the compiler's parts at their top, whether a job uses them or not. Only these two can
import them here: for a script they are missing. All that is in them, except `_THERE`, raises when it is used. A module
that is installed comes first.

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
"""Inference asks for classes of C++ while it is imported, mixtures of experts for values of their kernels."""


class CollectivesConfig:
    """NxD Core makes one when it makes its groups, and reads from it what only ring attention's kernel uses."""

    def __init__(self, **_: object) -> None:
        """Whatever the groups are."""
        self.rank_src_tgt_pairs: dict[int, None] = defaultdict(lambda: None)


_THERE: dict[str, Any] = {
    "CollectivesConfig": CollectivesConfig,
    "FlashConfig": flash_attention.FlashConfig,
    "flash_attn_bwd": flash_attention.flash_attn_bwd,
    "flash_fwd": flash_attention.flash_fwd,
    "jit": nki_jit,  # decorates kernels while the library is imported
    "nc": int,  # in a grid: so many physical cores to a logical one
}
"""What can be used."""


class _Module(ModuleType):
    """A module in which there is every name; but for `_THERE`, it can be subclassed and annotated, not used."""

    def __init__(self, name: str, instead: str) -> None:
        super().__init__(name)
        self.__version__ = VERSION  # optimum-neuron 0.1 describes the compiler with it
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system's questions
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
        """Nothing is in it."""

    def _instead(self, name: str) -> str | None:
        return next((text for top, text in self._packages.items() if f"{name}.".startswith(f"{top}.")), None)


def _asked_by_library() -> bool:
    """Whether the module that imports is one of NxD Core's."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib."):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _LIBRARIES


def expect() -> None:
    """From now on NxD Core finds these modules. Idempotent."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(_REPLACED))
        sys.meta_path.append(_Finder(_ABSENT))
