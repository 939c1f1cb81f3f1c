"""Batches: how many samples each has that the input pipeline hands over, how long it let the loop wait, and those that
a script without a loader makes by itself.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import _XLAC
import numpy as np
import torch

from neuron_sim.counters import script_time
from neuron_sim.counters.called import called

_DEPTH, _LOOKED_AT = 4, 64
"""How deep, and at how many of a batch's parts, to look for its first tensor."""


def samples_of(batch: Any, depth: int = _DEPTH) -> int:
    """The first dimension of a batch's first tensor; 0 where none is found.

    Only looks into what can be looked at twice: an iterator would be used up before the script sees it.
    """
    if isinstance(batch, torch.Tensor):
        return batch.size(0) if batch.ndim else 1  # nested ones have no `shape`
    if isinstance(batch, np.ndarray):
        return len(batch) if batch.ndim else 1
    if depth:
        for value in itertools.islice(parts_of(batch), _LOOKED_AT):
            if found := samples_of(value, depth - 1):
                return found
    return 0


def parts_of(batch: Any) -> Iterable[Any]:
    """What a batch is made of, if it is a collection or a dataclass, which can be looked at twice."""
    if isinstance(batch, Mapping):
        return batch.values()
    if isinstance(batch, tuple | list):
        return batch
    return vars(batch).values() if dataclasses.is_dataclass(batch) and hasattr(batch, "__dict__") else ()


def tensors_of(batch: Any, depth: int = _DEPTH) -> Iterator[torch.Tensor]:
    """Its tensors, as far as `samples_of` looks."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif depth:
        for value in itertools.islice(parts_of(batch), _LOOKED_AT):
            yield from tensors_of(value, depth - 1)


def telling(
    *listeners: Callable[[Any, int, float], None],
) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """Around torch_xla's `ParallelLoader.next_item`: tell of each batch.

    A listener is given the loader, the batch's samples, and the seconds that the loop waited for it.
    """

    def around(next_item: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        @functools.wraps(next_item)
        def telling_next_item(loader: Any, device: Any) -> Any:
            started = time.perf_counter()
            batch = next_item(loader, device)
            if batch is not None:
                waited_s = time.perf_counter() - started
                sent.note(*tensors_of(batch))
                samples = samples_of(batch)
                for listener in listeners:
                    listener(loader, samples, waited_s)
            return batch

        return telling_next_item

    return around


class Sent:
    """What is sent to the device in a step, by a loader or without, and how often gradients are computed of it."""

    def __init__(self) -> None:
        """Nothing has been sent."""
        self.computes_gradients = False
        """Now, or what a checkpointed layer computes for them."""
        self.forget()

    def forget(self) -> None:
        """A step begins."""
        self._tensors: Counter[int] = Counter()
        """Those that a script without a loader sends, by their first dimension."""
        self.numbers: set[int] = set()
        """torch_xla's, of all that is sent."""
        self.passes = 0
        """How often gradients were computed."""

    def note(self, *sent: torch.Tensor) -> None:
        """These tensors of the device came from the host."""
        self.numbers.update(_XLAC._xla_get_tensor_id(tensor) for tensor in sent if tensor.is_xla)

    def around_tensor_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Around `Tensor.to`."""

        @functools.wraps(to)
        def noted_to(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            moved = to(tensor, *arguments, **keywords)
            came = moved is not tensor and isinstance(moved, torch.Tensor) and moved.is_xla
            if came and tensor.device.type == "cpu" and not script_time.clock.is_aside:
                self.note(moved)
                if tensor.dim():
                    self._tensors[tensor.shape[0]] += 1
            return moved

        return noted_to

    def around_module_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Around `Module.to`: parameters are no batch."""

        @functools.wraps(to)
        def unnoted_to(*arguments: Any, **keywords: Any) -> Any:
            before = self._tensors.copy()
            try:
                return to(*arguments, **keywords)
            finally:
                self._tensors = before

        return unnoted_to

    @contextmanager
    def gradients(self) -> Iterator[None]:
        """Within: gradients are computed. What a checkpointed layer computes meanwhile is a part of it."""
        is_outer, self.computes_gradients = not self.computes_gradients, True
        self.passes += is_outer
        try:
            yield
        finally:
            self.computes_gradients = not is_outer

    def samples(self, updates: int) -> int:
        """What most tensors have first is the batch (a mask or a scale may be among them), for each pass that has one.

        A batch that is sent once may be cut up on the device, and several losses may be computed from it. Where none is
        sent, each pass of an update has what the model is called with. ``updates``: of optimizers, in this step.
        """
        if not self._tensors:
            return called.first * (self.passes and max(1, self.passes // max(1, updates)))
        ((size, times),) = self._tensors.most_common(1)
        return size * min(times, self.passes)


sent = Sent()
"""Those of this process."""
summed: set[int] = set()
"""Numbers of what collectives have put in the place of gradients in this step."""
