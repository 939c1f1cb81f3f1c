"""Counts the operations of a step that eager PyTorch on a GPU would launch, each as one or a few kernels.

The numbers come from torch_xla's own counters. Views do not count: they launch nothing on a GPU. Nor do operations of
an optimizer, of `xm.reduce_gradients` and of torch's functions that clip gradients, as a GPU has a few for all
parameters together; nor those of `nn.LSTM`, which torch_xla writes out step by step, where a GPU has one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch_xla.debug.metrics as metrics

_PREFIX = "xla::"
_JOINED = frozenset({"xla::bernoulli", "xla::addcmul", "xla::isneginf", "xla::all"})
"""Operations in dropout, norms and softmax, where torch_xla has several and a GPU has one."""
_LAUNCH_NOTHING = (
    "_copy",
    "_copy_from",
    "_copy_from_and_resize",
    "_propagate_xla_data",
    "_to_cpu",
    "_unsafe_view",
    # A write into a view of `as_strided`, as DistributedDataParallel has of its buckets: what is written has counted.
    # Other scatters count: they are mostly gradients of slices, which a GPU copies into zeros.
    "as_strided_scatter",
)
"""Endings of the names of operations that launch nothing on a GPU; views are named as copies."""


def _launches(name: str) -> bool:
    bare = name.removesuffix("_symint")
    return (
        name.startswith(_PREFIX)
        and name not in _JOINED
        and not bare.endswith(_LAUNCH_NOTHING)
        and not bare.startswith((f"{_PREFIX}empty", f"{_PREFIX}lift"))
    )


class Launches:
    """The launches of the current step, if they are wanted."""

    def __init__(self) -> None:
        """Nothing is counted before `begin`."""
        self._from: int | None = None
        self._since: int | None = None

    def begin(self, *, wanted: bool) -> None:
        """Begin a step. Not every one is wanted: reading torch_xla's counters takes 40 us, several times a step."""
        self._from = self._now() if wanted else None
        self._since = None

    def pause(self, *_: object) -> None:
        """Stop counting until `go_on`."""
        if self._from is not None and self._since is None:
            self._since = self._now()

    def go_on(self, *_: object) -> None:
        """Count again after `pause`."""
        if self._from is not None and self._since is not None:
            self._from += self._now() - self._since
            self._since = None

    def take(self) -> int:
        """The launches of this step; 0 if they are not wanted, or if the script has cleared torch_xla's counters."""
        return 0 if self._from is None else max(0, self._now() - self._from)

    def before_optimizer(
        self, _optimizer: object, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Pause for an optimizer's step, until `go_on`, but count in a closure, where the script computes gradients."""
        self.pause()
        if len(arguments) > 1:  # the first is the optimizer
            arguments = (arguments[0], self._counting(arguments[1]), *arguments[2:])
        elif "closure" in keywords:
            keywords = {**keywords, "closure": self._counting(keywords["closure"])}
        return arguments, keywords

    def _counting(self, closure: Any) -> Any:
        if not callable(closure):
            return closure

        @functools.wraps(closure)
        def counting() -> Any:
            self.go_on()
            try:
                return closure()
            finally:
                self.pause()

        return counting

    def around_lstm(self, lstm: Callable[..., tuple[torch.Tensor, ...]]) -> Callable[..., Any]:
        """Decorate torch's function: pause while it runs, and in its part of the backward pass."""

        @functools.wraps(lstm)
        def one_call(data: torch.Tensor, *others: Any) -> tuple[torch.Tensor, ...]:
            self.pause()
            found = lstm(data, *others)
            self.go_on()
            if self._from is not None:
                # Autograd goes backwards in order: between these two it differentiates this call.
                for result in found:
                    _before_gradients(result, self._pause_in_backward)
                _before_gradients(data, self.go_on)
            return found

        # TorchScript knows torch's function by its identity.
        torch.jit._builtins._register_builtin(one_call, torch.jit._builtins._find_builtin(lstm))
        return one_call

    def _pause_in_backward(self) -> None:
        if self._since is None:
            self.pause()
            # At the latest at the end of the backward pass: data that need no gradient have no hook.
            torch.autograd.Variable._execution_engine.queue_callback(self.go_on)

    def _now(self) -> int:
        return sum(
            int(metrics.counter_value(name) or 0) for name in metrics.counter_names() if _launches(name)
        )


def _before_gradients(tensor: torch.Tensor, listener: Callable[[], None]) -> None:
    """Call the listener when the gradients of what the tensor was computed from are about to be computed."""
    if tensor.grad_fn is not None:
        tensor.grad_fn.register_prehook(lambda _: listener())


counted = Launches()
"""The one of this process."""
