"""The shared memory of one host's workers: a small head, then one buffer a worker.

The file has a name in /dev/shm only until every worker has attached; after that the
memory lives exactly as long as the workers do, so nothing is left behind.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import torch

from neuron_sim.errors import NeuronSimError

SHARED_MEMORY = Path("/dev/shm")
FILE_PREFIX = "neuron_sim-"
DESCRIPTION_BYTES = 512
_ALIGNMENT = 4096

LEFT = 0xFFFFFFFF
"""In place of a worker's process id: its script has run to its end."""


class Region:
    """A worker's view of the region. ``index`` and ``workers`` count within the host."""

    def __init__(self, memory: mmap.mmap, index: int, workers: int) -> None:
        """Lay the views over the memory; use `attach` to get one."""
        self.index = index
        self.workers = workers
        self._memory = memory
        words = np.frombuffer(memory, dtype=np.uint32, count=_head_words(workers))
        # One writer a row: no atomic operations are needed.
        self.generation = words[:workers]
        self.pids = words[workers : 2 * workers]
        self.arrivals = words[2 * workers :].reshape(workers, workers)
        self.generation_address = self.generation.ctypes.data
        self._descriptions = np.frombuffer(
            memory, dtype=np.uint8, count=workers * DESCRIPTION_BYTES, offset=_head_words(workers) * 4
        ).reshape(workers, DESCRIPTION_BYTES)
        start = _data_offset(workers)
        self.buffer_bytes = (len(memory) - start) // workers // _ALIGNMENT * _ALIGNMENT
        data = torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=self.buffer_bytes * workers)
        self._buffers = data.view(workers, self.buffer_bytes)

    @property
    def half_bytes(self) -> int:
        """Bytes of one of a worker's two alternating halves."""
        return self.buffer_bytes // 2

    def half(self, worker: int, which: int, dtype: torch.dtype, count: int) -> torch.Tensor:
        """``count`` elements at the start of a worker's half, as a view of the shared memory."""
        size = torch.empty((), dtype=dtype).element_size()
        start = which * self.half_bytes
        return self._buffers[worker, start : start + count * size].view(dtype)

    def leave(self) -> None:
        """Take part in nothing more. The process may live on: torch's agent keeps it until all have ended."""
        self.pids[self.index] = LEFT

    def describe(self, text: str) -> None:
        """Say what this worker is about to do; readable by the others after the next arrival."""
        raw = text.encode()[: DESCRIPTION_BYTES - 1]
        row = self._descriptions[self.index]
        row[: len(raw)] = np.frombuffer(raw, dtype=np.uint8)
        row[len(raw)] = 0

    def description(self, worker: int) -> str:
        """What a worker said it is doing."""
        raw: bytes = self._descriptions[worker].tobytes()
        return raw[: raw.index(0)].decode(errors="replace")


def _head_words(workers: int) -> int:
    return 2 * workers + workers * workers


def _data_offset(workers: int) -> int:
    head = _head_words(workers) * 4 + workers * DESCRIPTION_BYTES
    return -(-head // _ALIGNMENT) * _ALIGNMENT


def attach(name: str, index: int, workers: int, data_bytes: int) -> Region:
    """Open the host's region, or create it when this worker is the first to need it. Does not wait.

    Workers that never take part in a collective never attach. Whoever completes the
    set removes the name.
    """
    path = SHARED_MEMORY / f"{FILE_PREFIX}{name}"
    region = Region(_open(path) or _create(path, workers, data_bytes), index, workers)
    region.pids[index] = os.getpid()
    if region.pids.all():
        path.unlink(missing_ok=True)
    return region


def _open(path: Path) -> mmap.mmap | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return mmap.mmap(descriptor, 0)
    finally:
        os.close(descriptor)


def _create(path: Path, workers: int, data_bytes: int) -> mmap.mmap:
    """Make it under a temporary name, then link it: nobody opens a half-sized file, and the first one wins."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, _data_offset(workers) + data_bytes)
        os.link(temporary, path)
        return mmap.mmap(descriptor, 0)
    except FileExistsError:
        existing = _open(path)
        if existing is None:
            raise NeuronSimError(f"{path} vanished while this worker attached to it") from None
        return existing
    finally:
        os.close(descriptor)
        temporary.unlink()


def forget(name: str) -> None:
    """Remove the name that is left when not all workers attached."""
    for path in SHARED_MEMORY.glob(f"{FILE_PREFIX}{name}*"):
        path.unlink(missing_ok=True)
