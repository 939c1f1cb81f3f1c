"""Which loader made a batch, on which line of the script, and how long the loop waited for it."""

from __future__ import annotations

import functools
import itertools
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from neuron_sim.counters import script_lines, script_time
from neuron_sim.diagnostics.batch_sizes import Loader

_INNER = ("_cpu_loader", "_loader", "dataloader", "base_dataloader")
"""Under these names wrappers (MpDeviceLoader, accelerate's loaders) keep the loader that they wrap."""

_DEPTH, _LOOKED_AT = 4, 64
"""How deep, and at how many of a batch's parts, to look for its first tensor."""


class Batches:
    """Follows torch's DataLoader and torch_xla's loaders in the script's own thread."""

    def __init__(self) -> None:
        """Hook into both."""
        self._loaders: weakref.WeakKeyDictionary[Any, Loader] = weakref.WeakKeyDictionary()
        self._waited_s = 0.0
        self.latest: Loader | None = None
        self._hook_data_loader()
        self._hook_parallel_loader()

    def waited(self) -> float:
        """Seconds that plain DataLoaders kept the loop waiting since the last call."""
        waited, self._waited_s = self._waited_s, 0.0
        return waited

    def _record(self, loader: Any) -> Loader:
        try:
            return self._loaders.setdefault(_innermost(loader), Loader())
        except TypeError:
            # torch_xla takes any iterable. Not every one can be a weak key (a list), what wraps it can.
            return self._loaders.setdefault(loader, Loader())

    @script_time.set_aside
    def _came(self, record: Loader, size: int) -> None:
        record.came(size, script_lines.calling_line())
        self.latest = record

    def _hook_data_loader(self) -> None:
        from torch.utils.data import DataLoader
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        initialise = DataLoader.__init__

        @functools.wraps(initialise)
        def noted_init(loader: Any, *arguments: Any, **keywords: Any) -> None:
            initialise(loader, *arguments, **keywords)
            self._loaders[loader] = Loader(made_at=script_lines.calling_line())

        DataLoader.__init__ = noted_init

        make_iterator = DataLoader.__iter__
        came_from: weakref.WeakKeyDictionary[Any, Loader] = weakref.WeakKeyDictionary()

        @functools.wraps(make_iterator)
        def noted_iter(loader: Any) -> Any:
            iterator = make_iterator(loader)
            # The record and not the loader, which may be gone: `for batch in DataLoader(...)`.
            came_from[iterator] = self._record(loader)
            return iterator

        DataLoader.__iter__ = noted_iter

        advance = _BaseDataLoaderIter.__next__

        @functools.wraps(advance)
        def timed_next(iterator: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                # MpDeviceLoader's own thread reads ahead: nobody waits for this.
                return advance(iterator)
            started = time.perf_counter()
            item = advance(iterator)
            self._waited_s += time.perf_counter() - started
            if (record := came_from.get(iterator)) is not None:
                self._came(record, leading_dimension(item))
            return item

        _BaseDataLoaderIter.__next__ = timed_next

    def _hook_parallel_loader(self) -> None:
        from torch_xla.distributed.parallel_loader import ParallelLoader

        next_item = ParallelLoader.next_item

        @functools.wraps(next_item)
        def noted_next_item(loader: Any, device: Any) -> Any:
            item = next_item(loader, device)
            if item is not None:
                self._came(self._record(loader), leading_dimension(item))
            return item

        ParallelLoader.next_item = noted_next_item


def leading_dimension(item: Any, depth: int = _DEPTH) -> int:
    """Samples in a batch: the first dimension of its first tensor; 0 where none is found.

    Only looks into what can be looked at twice: an iterator would be used up before the script sees it.
    """
    if isinstance(item, (torch.Tensor, np.ndarray)):
        return int(item.shape[0]) if item.ndim else 1
    if depth == 0 or not isinstance(item, (tuple, list, Mapping)):
        return 0
    values = item.values() if isinstance(item, Mapping) else item
    for value in itertools.islice(values, _LOOKED_AT):
        if found := leading_dimension(value, depth - 1):
            return found
    return 0


def _innermost(loader: Any) -> Any:
    from torch.utils.data import DataLoader

    while not isinstance(loader, DataLoader):
        inner = next((getattr(loader, name) for name in _INNER if hasattr(loader, name)), None)
        if inner is None:
            break
        loader = inner
    return loader
