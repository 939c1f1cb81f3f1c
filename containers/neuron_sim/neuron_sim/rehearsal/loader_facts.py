"""What a loader says of itself, and of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from neuron_sim import settings
from neuron_sim.rehearsal.passes import LoaderFacts


def facts(loader: Any) -> LoaderFacts:
    """Of a torch DataLoader, or of anything that torch_xla's loaders take."""
    streams = isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset)
    workers = getattr(loader, "num_workers", 0)
    return LoaderFacts(_length(loader), _is_split(loader), _last(loader), workers, streams)


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return None


def _last(loader: Any) -> int | None:
    """Samples of the last batch, where the loader itself makes batches of one size from a sampler."""
    size = getattr(loader, "batch_size", None)
    samples = _length(getattr(loader, "sampler", None))
    batches = getattr(loader, "batch_sampler", None)
    # Accelerate has one of its own, which shares the batches out.
    if type(batches) is not torch.utils.data.BatchSampler or not isinstance(size, int) or not samples:
        return None
    return size if getattr(loader, "drop_last", False) else (samples - 1) % size + 1


def _is_split(loader: Any) -> bool:
    """By a sampler of torch's, or of accelerate's form, or every so many-th index for so many cores."""
    indices = getattr(loader, "sampler", None), getattr(getattr(loader, "dataset", None), "indices", None)
    cores = settings.identity().world_size
    if cores > 1 and any(isinstance(found, range) and found.step == cores for found in indices):
        return True
    parts = (getattr(loader, name, None) for name in ("sampler", "batch_sampler", "dataset"))
    found = [part for part in parts if part is not None]
    found += [inner for part in found if (inner := getattr(part, "sampler", None)) is not None]
    replicas = (getattr(part, name, 1) for part in found for name in ("num_replicas", "num_processes"))
    return any(isinstance(number, int) and number > 1 for number in replicas) or any(
        isinstance(part, torch.utils.data.DistributedSampler) for part in found
    )


def sequence_length(batch: Any) -> int | None:
    """Of token numbers, one row a sample; None: there are none."""
    parts = (
        batch.values()
        if isinstance(batch, Mapping)
        else batch
        if isinstance(batch, tuple | list)
        else (batch,)
    )
    lengths = [
        int(part.shape[1])
        for part in parts
        if isinstance(part, torch.Tensor) and part.ndim == 2 and not part.dtype.is_floating_point
    ]
    return max(lengths, default=None)
