"""The names of torch_xla as the job's framework_version has them.

The image has one version of torch_xla. Names that it no longer has come back for versions that had
them. Names newer than the version asked for stay, since the image's libraries use them, but warn
when the script itself calls them: on the real image they are missing.
"""

from __future__ import annotations

import functools
import importlib
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from neuron_sim import names
from neuron_sim.errors import refusal
from neuron_sim.names import Name, Version

Function = Callable[..., Any]

_DEPRECATED_SINCE: Version = (2, 5)
"""From this version on, the real functions logged that they are deprecated."""


def refused() -> Iterator[tuple[str, Function]]:
    """Names of torch_xla that are refused where a script calls them: entry point and replacement."""
    for name in _of_torch_xla():
        if name.refused:
            yield _entry(name), refusal(f"{name.module}.{name.name}", name.refused)


def old(version: Version) -> Iterator[tuple[str, Function]]:
    """Names that a framework version had and the image's torch_xla lacks: entry point and function."""
    gone = _gone()
    for name in _of_torch_xla():
        function = gone.get((name.module, name.name))
        if function is not None and name.in_version(version):
            telling = version >= _DEPRECATED_SINCE and name.note
            yield _entry(name), _telling(name, function) if telling else function


def newer(version: Version) -> Iterator[tuple[str, Callable[[Function], Function]]]:
    """Functions that a framework version did not have yet: entry point and decorator."""
    for name in _of_torch_xla():
        if name.is_newer_than(version) and not name.refused:
            function = getattr(importlib.import_module(name.module), name.name, None)
            if callable(function) and not isinstance(function, type):
                yield _entry(name), functools.partial(_warning_of, name, version)


def _of_torch_xla() -> Iterator[Name]:
    return (name for name in names.every() if name.module.startswith("torch_xla"))


def _entry(name: Name) -> str:
    return f"{name.module}:{name.name}"


def _gone() -> dict[tuple[str, str], Function]:
    """Functions that torch_xla 2.9 no longer has, by module and name, as the last version with them did it."""
    import torch_xla
    import torch_xla.runtime as xr

    xm = "torch_xla.core.xla_model"
    return {
        (xm, "xrt_world_size"): lambda defval=1: int(xr.world_size()),
        (xm, "get_ordinal"): lambda defval=0: int(xr.global_ordinal()),
        (xm, "parse_xla_device"): _parse_xla_device,
        ("torch_xla.runtime", "xla_device"): lambda n=None, devkind=None: torch_xla.device(n),
        ("torch_xla.runtime", "using_pjrt"): lambda: True,
        ("torch_xla.runtime", "requires_pjrt"): lambda function: function,
        ("torch_xla.experimental", "compile"): torch_xla.compile,
    }


def _parse_xla_device(device: str) -> tuple[str, int] | None:
    """Kind and number of a device such as NEURON:0."""
    match = re.fullmatch(r"([A-Z]+):(\d+)", device)
    return (match[1], int(match[2])) if match else None


def _telling(name: Name, function: Function) -> Function:
    """Log at the first call what torch_xla logged: that the name is deprecated, and what replaces it."""
    told = False

    @functools.wraps(function)
    def old_name(*arguments: Any, **keywords: Any) -> Any:
        nonlocal told
        if not told:
            told = True
            logging.getLogger().warning("%s.%s is deprecated: %s", name.module, name.name, name.note)
        return function(*arguments, **keywords)

    return old_name


def _warning_of(name: Name, version: Version, function: Function) -> Function:
    """Warn once, when a script itself calls the function, that it is newer than the version asked for."""
    warned = False

    @functools.wraps(function)
    def newer(*arguments: Any, **keywords: Any) -> Any:
        nonlocal warned
        if not warned and "site-packages" not in sys._getframe(1).f_code.co_filename:
            warned = True
            since, asked = (".".join(map(str, version)) for version in (name.since or (), version))
            warnings.warn(
                f"{name.module}.{name.name} came with torch_xla {since}: a job with framework_version {asked} "
                "does not find it on SageMaker.",
                stacklevel=2,
            )
        return function(*arguments, **keywords)

    return newer
