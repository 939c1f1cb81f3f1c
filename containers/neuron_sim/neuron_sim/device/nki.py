"""NKI kernels: scripts and libraries may define them; launching one of theirs raises NotSimulatedError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_sim.errors import refusal
from neuron_sim.names.neuron_names import HLO, NKI


class Kernel:
    """A kernel as scripts launch it: called directly, or over a grid, which plain PyTorch ignores."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """``function`` is called at each launch."""
        self._function = function

    def __getitem__(self, _: object) -> Callable[..., Any]:
        """The function that launches the kernel over a grid."""
        return self._function

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Launch the kernel."""
        return self._function(*given, **named)


def nki_jit(kernel: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Decorate a kernel, with or without options; launching it raises. NxD Core decorates its kernels at import."""
    if kernel is None:
        return nki_jit
    return Kernel(refusal(f"The NKI kernel {getattr(kernel, '__name__', kernel)}", NKI))


def xla_hlo_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that writes XLA operations itself; calling it raises NotSimulatedError."""
    return refusal(f"xla_hlo_call of {function.__name__}", HLO)
