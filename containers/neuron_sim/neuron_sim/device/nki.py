"""Kernels of the device: scripts and libraries may define them, and launching one of theirs is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_sim.errors import refusal
from neuron_sim.names.neuron_names import HLO, NKI


class Kernel:
    """A kernel as scripts launch it: called, or called over a grid, which plain PyTorch needs not."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """``function``: what a launch calls."""
        self._function = function

    def __getitem__(self, _: object) -> Callable[..., Any]:
        """The kernel over a grid."""
        return self._function

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Launch it."""
        return self._function(*given, **named)


def nki_jit(kernel: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Decorates a kernel, with or without options: launching it is refused. NxD Core decorates its own at import."""
    if kernel is None:
        return nki_jit
    return Kernel(refusal(f"The NKI kernel {getattr(kernel, '__name__', kernel)}", NKI))


def xla_hlo_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function that writes operations of XLA by itself; calling it is refused."""
    return refusal(f"xla_hlo_call of {function.__name__}", HLO)
