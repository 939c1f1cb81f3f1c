"""Counts the samples of batches, from the input pipeline or made by a script without a loader, and the seconds that
the loop waited for the pipeline.
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

    Only looks into collections and dataclasses: an iterator would be used up before the script sees it.
    """
    if isinstance(batch, torch.Tensor):
        return batch.size(0) if batch.ndim else 1  # nested tensors have no `shape`
    if isinstance(batch, np.ndarray):
        return len(batch) if batch.ndim else 1
    if depth:
        for value in itertools.islice(parts_of(batch), _LOOKED_AT):
            if found := samples_of(value, depth - 1):
                return found
    return 0


def parts_of(batch: Any) -> Iterable[Any]:
    """The elements of a batch that is a mapping, tuple, list or dataclass; else nothing."""
    if isinstance(batch, Mapping):
        return batch.values()
    if isinstance(batch, tuple | list):
        return batch
    return vars(batch).values() if dataclasses.is_dataclass(batch) and hasattr(batch, "__dict__") else ()


def tensors_of(batch: Any, depth: int = _DEPTH) -> Iterator[torch.Tensor]:
    """The tensors of a batch, as deep as `samples_of` looks."""
    if isinstance(batch, torch.Tensor):
        yield batch
    elif depth:
        for value in itertools.islice(parts_of(batch), _LOOKED_AT):
            yield from tensors_of(value, depth - 1)


def telling(
    *listeners: Callable[[Any, int, float], None],
) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """Decorate torch_xla's `ParallelLoader.next_item`: call the listeners for each batch.

    A listener gets the loader, the batch's number of samples, and the seconds that the loop waited for it.
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
    """The tensors sent to the device in a step, by a loader or by the script, and how often gradients are computed."""

    def __init__(self) -> None:
        """No tensor has been sent."""
        self.computes_gradients = False
        """Whether a backward pass is running, which includes what a checkpointed layer computes again."""
        self.forget()

    def forget(self) -> None:
        """Begin a step."""
        self._tensors: Counter[int] = Counter()
        """How many tensors a script without a loader has sent, by their first dimension."""
        self.numbers: set[int] = set()
        """torch_xla's ids of all tensors that were sent."""
        self.passes = 0
        """How often gradients were computed in this step."""

    def note(self, *sent: torch.Tensor) -> None:
        """Note tensors of the device that came from the host."""
        self.numbers.update(_XLAC._xla_get_tensor_id(tensor) for tensor in sent if tensor.is_xla)

    def around_tensor_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `Tensor.to`: note what is sent to the device."""

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
        """Decorate `Module.to`: parameters do not count as batches."""

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
        """Mark the block as a backward pass. A checkpointed layer's own, within it, counts as a part of it."""
        is_outer, self.computes_gradients = not self.computes_gradients, True
        self.passes += is_outer
        try:
            yield
        finally:
            self.computes_gradients = not is_outer

    def samples(self, updates: int) -> int:
        """The step's samples: the most frequent first dimension of the tensors sent, for each pass that has a batch.

        Masks and scales may have other dimensions. A batch that is sent once may be cut up on the device, or have
        several losses. If none is sent, each pass of an update has the samples of the model's input (`called`).
        ``updates``: steps of optimizers in this step.
        """
        if not self._tensors:
            return called.first * (self.passes and max(1, self.passes // max(1, updates)))
        ((size, times),) = self._tensors.most_common(1)
        return size * min(times, self.passes)


sent = Sent()
"""The one of this process."""
summed: set[int] = set()
"""torch_xla's ids of the tensors, such as summed gradients, that collectives have assigned in this step."""
