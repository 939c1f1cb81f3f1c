"""Names that published Trainium scripts use and that torch_xla 2.7 removed.

The image has one torch_xla. A script that asks for an older framework version
finds the names that it would find there; one that asks for a newer does not.
Source: torch_xla 2.7 release notes, "Deprecations and removals".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

LAST_VERSION = (2, 6)


def install(framework_version: tuple[int, int]) -> None:
    """Add the old names to `torch_xla.core.xla_model` up to framework version 2.6."""
    if framework_version > LAST_VERSION:
        return
    import torch_xla.core.xla_model as xm
    import torch_xla.runtime as xr

    def xrt_world_size(defval: int = 1) -> int:
        """Number of replicas; ``defval`` is accepted and unused, as in torch_xla 2.x."""
        return int(xr.world_size())

    def get_ordinal(defval: int = 0) -> int:
        """Ordinal of this replica; ``defval`` is accepted and unused, as in torch_xla 2.x."""
        return int(xr.global_ordinal())

    def get_local_ordinal(defval: int = 0) -> int:
        """Ordinal of this replica on its host."""
        return int(xr.local_ordinal())

    xm.xrt_world_size = _deprecated(xrt_world_size, "xr.world_size")
    xm.get_ordinal = _deprecated(get_ordinal, "xr.global_ordinal")
    xm.get_local_ordinal = _deprecated(get_local_ordinal, "xr.local_ordinal")


def _deprecated(function: Callable[..., int], instead: str) -> Callable[..., int]:
    def old_name(*arguments: Any, **keywords: Any) -> int:
        warnings.warn(f"Use torch_xla.runtime: {instead} instead", DeprecationWarning, stacklevel=2)
        return function(*arguments, **keywords)

    old_name.__name__ = function.__name__
    old_name.__doc__ = function.__doc__
    return old_name
