"""Finds the samples of a pass whose batch the script makes on the device: the first dimension of the tensor with which
its model is called.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

_CALL = torch.nn.Module._call_impl.__code__


def is_calling() -> bool:
    """Whether a module is being called now, for example if its forward pass ends steps."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code is _CALL:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class Called:
    """Watches the calls of modules until a step has trained; later, a hook on each call would only slow the steps."""

    def __init__(self) -> None:
        """No module has been called."""
        self.first = 0
        """The first dimension; 0: not known."""
        self._hook: Any = None
        self._is_known = False

    def watch(self) -> None:
        """Start watching, unless a step has trained. Idempotent."""
        if self._hook is None and not self._is_known:
            self._hook = register_module_forward_pre_hook(self._note)

    def step_ended(self, *, trains: bool) -> None:
        """Called when a step ends. Stop after one that trains; forget the calls of any other, which tell nothing."""
        if trains:
            self.stop()
        elif self._hook is not None:
            self.first = 0

    def stop(self) -> None:
        """Stop watching. Also called before `torch.compile`, which warns of such hooks, and would compile them."""
        if self._hook is not None:
            self._hook.remove()
        self._hook, self._is_known = None, True

    def _note(self, _module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        """Take the dimension from the first module that gets a tensor: the outermost one is called first."""
        if self.first or not torch.is_grad_enabled():
            return
        given = (one for one in inputs if isinstance(one, torch.Tensor) and one.is_xla and one.dim())
        self.first = next((one.shape[0] for one in given), 0)


called = Called()
"""The one of this process."""
