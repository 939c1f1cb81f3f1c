"""Batches that the input pipeline hands over: how many samples each has, and how long it let the loop wait."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

_DEPTH, _LOOKED_AT = 4, 64
"""How deep, and at how many of a batch's parts, to look for its first tensor."""


def samples_of(batch: Any, depth: int = _DEPTH) -> int:
    """The first dimension of a batch's first tensor; 0 where none is found.

    Only looks into what can be looked at twice: an iterator would be used up before the script sees it.
    """
    if isinstance(batch, (torch.Tensor, np.ndarray)):
        return int(batch.shape[0]) if batch.ndim else 1
    if depth == 0 or not isinstance(batch, (tuple, list, Mapping)):
        return 0
    values = batch.values() if isinstance(batch, Mapping) else batch
    for value in itertools.islice(values, _LOOKED_AT):
        if found := samples_of(value, depth - 1):
            return found
    return 0


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
                samples = samples_of(batch)
                for listener in listeners:
                    listener(loader, samples, waited_s)
            return batch

        return telling_next_item

    return around
