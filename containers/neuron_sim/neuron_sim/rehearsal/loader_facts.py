"""Reads the facts of a loader, and of its batches."""

from __future__ import annotations

from typing import Any

import torch

from neuron_sim import settings
from neuron_sim.counters.batches import parts_of
from neuron_sim.rehearsal.passes import LoaderFacts

_SERIES = (2, 3)
"""Dimensions of a batch of series: samples of a sound, or frames with their features. Pictures have four."""


def facts(loader: Any) -> LoaderFacts:
    """The facts of a torch DataLoader, or of anything else that torch_xla's loaders take."""
    streams = isinstance(asked(loader, "dataset"), torch.utils.data.IterableDataset)
    workers = asked(loader, "num_workers") or 0
    size = asked(loader, "batch_size")
    return LoaderFacts(_length(loader), _is_split(loader), _last(loader, size), size, workers, streams)


def asked(thing: Any, name: str) -> Any:
    """An attribute of a script's own object; None if it is missing, or raises any error."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a KeyError of a `__getattr__`, a property that is not ready
        return None


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except Exception:  # noqa: BLE001 - not every script asks: one that cannot say may raise anything
        return None


def _last(loader: Any, size: Any) -> int | None:
    """Items of the last batch, if the loader itself makes batches of one size from a sampler; else None."""
    samples = _length(asked(loader, "sampler"))
    batches = asked(loader, "batch_sampler")
    # Accelerate has a batch sampler of its own, which shares the batches out among processes.
    if type(batches) is not torch.utils.data.BatchSampler or not isinstance(size, int) or not samples:
        return None
    return size if asked(loader, "drop_last") else (samples - 1) % size + 1


def _is_split(loader: Any) -> bool:
    """Whether each core has its own samples: by torch's or accelerate's sampler, or by every n-th index of n cores."""
    indices = asked(loader, "sampler"), asked(asked(loader, "dataset"), "indices")
    cores = settings.identity().world_size
    if cores > 1 and any(isinstance(found, range) and found.step == cores for found in indices):
        return True
    parts = (asked(loader, name) for name in ("sampler", "batch_sampler", "dataset"))
    found = [part for part in parts if part is not None]
    found += [inner for part in found if (inner := asked(part, "sampler")) is not None]
    replicas = (asked(part, name) for part in found for name in ("num_replicas", "num_processes"))
    return any(isinstance(number, int) and number > 1 for number in replicas) or any(
        isinstance(part, torch.utils.data.DistributedSampler) for part in found
    )


def sequence_length(batch: Any) -> int | None:
    """The length of the token sequences in a batch (one row per sample); None: there are none.

    Beside a larger series of floats, as of a sound, tokens are what it says: the model reads the series.
    """
    parts = (batch,) if isinstance(batch, torch.Tensor) else parts_of(batch)
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    tokens = [each for each in tensors if each.ndim == 2 and not each.dtype.is_floating_point]
    if not tokens:
        return None
    longest = max(tokens, key=lambda each: each.shape[1])
    series = (each for each in tensors if each.ndim in _SERIES and each.dtype.is_floating_point)
    if any(each.numel() > longest.numel() for each in series):
        return None
    return int(longest.shape[1])
