"""What decorates kernels of the device: scripts and libraries may define them, and launching one is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuron_sim.errors import refusal
from neuron_sim.names.neuron_names import HLO, NKI


def nki_jit(kernel: Callable[..., Any] | None = None, **_: Any) -> Any:
    """Decorates a kernel, with or without options. NxD Core decorates its own while it is imported."""
    return Kernel if kernel is None else Kernel(kernel)


class Kernel:
    """A kernel written in NKI: scripts and libraries may define it; launching it is refused."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        """``kernel``: the function that it was written as."""
        self._refuse = refusal(f"The NKI kernel {getattr(kernel, '__name__', kernel)}", NKI)

    def __getitem__(self, _: object) -> Any:
        """The kernel over a grid: refused when it is called."""
        return self._refuse

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Launch it.

        Raises:
            NotSimulatedError: always.
        """
        return self._refuse()


def xla_hlo_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function that writes operations of XLA by itself; calling it is refused."""
    return refusal(f"xla_hlo_call of {function.__name__}", HLO)
