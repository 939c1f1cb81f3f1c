"""Seconds and dollars of a training job, from counters, published figures and stated assumptions.

Pure: it reads no clock, no environment and no files but its own data, and needs only the standard
library. The same input always gives the same output.

The subpackages; each imports only those above it in this list:

    instances/    the hardware figures of each instance type
    model/        seconds of one step, resource by resource, from given constants
    calibration/  the constants, the published rows behind them, and how wrong they are
    workload/     what one step of a job is, counted or described, and its time on any cluster
    money/        prices, billing, and one job compared on several instances
    published/    AWS's own jobs and tables, recomputed and predicted

`api` lists the public names. It is imported when the first of them is used, so that importing one
subpackage does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Load a public name from `api` (PEP 562)."""
    api = import_module(f"{__name__}.api")
    if name.startswith("_") or name not in vars(api):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)
