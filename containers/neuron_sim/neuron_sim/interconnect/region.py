"""The shared memory of one host's workers: a head with one row per worker, then one buffer per worker.

Every word of the head has one writer at a time, so no atomic operations are needed. The
memory has no name when our launcher made it (`prepare`); otherwise it has one in
/dev/shm until every worker has attached. Nothing is left behind, whichever process dies.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from neuron_sim.errors import NeuronSimError

SHARED_MEMORY = Path("/dev/shm")
FILE_PREFIX = "neuron_sim-"
TEXT_BYTES = 504
PAYLOAD_BYTES = 4096
"""Bytes of data in a slot, beside its description: operations up to this size need no buffer."""

LETTERS = 16
"""How many tensors that a worker has sent over channels can wait to be received."""

LEFT = 0xFFFFFFFF
"""In place of a worker's process id: its script has run to its end."""
FAILED = LEFT - 1
"""In place of a worker's process id: its script has ended with an error."""

_ALIGNMENT = 4096
_LINE = 8  # 64-bit words of a cache line: no two workers write to the same line
_HASH_BYTES = 8
_SLOT_BYTES = _HASH_BYTES + TEXT_BYTES + PAYLOAD_BYTES

_prepared: list[int] = []


class Seat(NamedTuple):
    """The state of one worker, as the region tells it."""

    pid: int
    """Its process id; 0 before it has attached, LEFT or FAILED after its script's end."""
    busy: bool
    """Whether it is inside a collective."""
    text: str
    """The description of its current or last collective; empty before its first one."""


class Region:
    """A worker's view of the region. ``index`` and ``workers`` count within the host."""

    def __init__(self, memory: mmap.mmap, index: int, workers: int) -> None:
        """Lay the views over the memory; use `attach` to get one."""
        self.index = index
        self.workers = workers
        self.size = len(memory)
        words = np.frombuffer(memory, dtype=np.uint64, count=_head_words(workers))
        rows = words[: 2 * workers * _LINE].reshape(2, workers, _LINE)
        self.progress = rows[0, :, 0]
        """(operation << 32) + steps done in it."""
        self.current = rows[0, :, 1]
        """The number of the operation that the worker is in or was in last."""
        self.finished = rows[0, :, 2]
        """The number of the last operation that it has finished."""
        self.pids = rows[0, :, 3]
        self.lost = rows[0, :, 4]
        """1 + the worker whose loss has ended this worker's last operation; 0: none."""
        self.stacks = rows[0, :, 5]
        """1 + the worker's descriptor for `stack.line_of`; 0 before it answers."""
        self.asleep = rows[1].view(np.uint32)[:, 0]
        """0, or what the worker sleeps for; the worker that provides it writes 0 and wakes the sleeper."""
        self.asleep_address = self.asleep.ctypes.data
        self.asleep_stride = self.asleep.strides[0]
        rest = words[2 * workers * _LINE :]
        self.meetings = rest[: workers * workers].reshape(workers, workers)
        """[i][j]: (i's operation << 32) + how often i has come to meet j."""
        rest = rest[workers * workers :]
        self.letters = rest[: workers * LETTERS * 4].reshape(workers, LETTERS, 4)
        """Tensors that i has sent over channels: number, counted by i from 1; channel; descriptor; process id."""
        self.fetched = rest[workers * LETTERS * 4 :].reshape(workers, LETTERS)
        """The number of the last letter that was fetched there; written by the holder of the lock of its file."""
        slots = np.frombuffer(
            memory, dtype=np.uint8, count=workers * 2 * _SLOT_BYTES, offset=_head_words(workers) * 8
        ).reshape(workers, 2, _SLOT_BYTES)
        self.hashes = slots[:, :, :_HASH_BYTES].view(np.uint64)[:, :, 0]
        self._texts = slots[:, :, _HASH_BYTES : _HASH_BYTES + TEXT_BYTES]
        self.payloads = torch.from_numpy(slots)[:, :, _HASH_BYTES + TEXT_BYTES :]
        self._remarks = np.frombuffer(
            memory, dtype=np.uint8, count=workers * TEXT_BYTES, offset=_remarks_offset(workers)
        ).reshape(workers, TEXT_BYTES)
        start = _data_offset(workers)
        self.buffer_bytes = max(0, len(memory) - start) // workers // _ALIGNMENT * _ALIGNMENT
        if not self.buffer_bytes:
            raise NeuronSimError(
                f"{self.size} bytes of shared memory are too few for {workers} workers: give at least "
                f"{_least_bytes(workers)} (WINDTUNNEL_SHARED_MEMORY_MIB)"
            )
        data = torch.frombuffer(memory, dtype=torch.uint8, offset=start, count=self.buffer_bytes * workers)
        self._buffers = data.view(workers, self.buffer_bytes)
        # Bytes objects are copied here faster than through numpy.
        self._raw = memoryview(memory)
        self._slots_offset = _head_words(workers) * 8

    def view(self, worker: int, start: int, dtype: torch.dtype, count: int) -> torch.Tensor:
        """``count`` elements of a worker's buffer from byte ``start`` on, as a view of the shared memory."""
        return self._buffers[worker, start : start + count * dtype.itemsize].view(dtype)

    def describe(self, which: int, digest: bytes, text: bytes) -> None:
        """Write a description into one of this worker's two slots. At most TEXT_BYTES - 1 are kept."""
        start = self._slots_offset + (self.index * 2 + which) * _SLOT_BYTES
        self._raw[start : start + _HASH_BYTES] = digest
        self._write(start + _HASH_BYTES, text)

    def text(self, worker: int, which: int) -> str:
        """The description in a worker's slot."""
        return _read(self._texts[worker, which])

    def remark(self, text: str) -> None:
        """Set what other workers report if they miss this one. At most TEXT_BYTES - 1 bytes are kept."""
        self._write(_remarks_offset(self.workers) + self.index * TEXT_BYTES, text.encode())

    def remark_of(self, worker: int) -> str:
        """The remark that a worker has left, or an empty string."""
        return _read(self._remarks[worker])

    def _write(self, start: int, text: bytes) -> None:
        text = text[: TEXT_BYTES - 1] + b"\0"
        self._raw[start : start + len(text)] = text

    def seat(self, worker: int) -> Seat:
        """What a worker does, as it last published."""
        operation = int(self.current[worker])
        busy = operation != int(self.finished[worker])
        return Seat(int(self.pids[worker]), busy, self.text(worker, operation % 2) if operation else "")

    def leave(self, *, failed: bool) -> None:
        """Mark this worker as ended. Its process may live on: torch's agent keeps it until all have ended."""
        self.pids[self.index] = FAILED if failed else LEFT


def _head_words(workers: int) -> int:
    return 2 * workers * _LINE + workers * workers + workers * LETTERS * 5


def _remarks_offset(workers: int) -> int:
    return _head_words(workers) * 8 + workers * 2 * _SLOT_BYTES


def _data_offset(workers: int) -> int:
    return -(-(_remarks_offset(workers) + workers * TEXT_BYTES) // _ALIGNMENT) * _ALIGNMENT


def _read(text: np.ndarray) -> str:
    raw: bytes = text.tobytes()
    return raw.partition(b"\0")[0].decode(errors="replace")


def _least_bytes(workers: int) -> int:
    return _data_offset(workers) + workers * _ALIGNMENT


def prepare(workers: int, size: int, attempts: int) -> None:
    """Make one nameless region per attempt, for workers that this process is going to fork."""
    for descriptor in _prepared:
        os.close(descriptor)
    _prepared.clear()
    for _ in range(attempts):
        descriptor = os.memfd_create("neuron_sim", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, max(size, _least_bytes(workers)))
        _prepared.append(descriptor)


def unprepared() -> None:
    """Forget the prepared regions in this process: they are for the process that has forked it."""
    _prepared.clear()


def prepared(attempt: int, index: int, workers: int) -> Region | None:
    """The region that was prepared for an attempt (0: the first), or None when none was."""
    if attempt >= len(_prepared):
        return None
    return Region(mmap.mmap(_prepared[attempt], 0), index, workers)


def attach(name: str, attempt: int, index: int, workers: int, size: int) -> Region:
    """Open the host's region, or create it when this worker is the first to need it. Does not wait.

    Workers that never take part in a collective never attach. The last worker to
    attach removes the name, if there is one.
    """
    region = prepared(attempt, index, workers)
    if region is not None:
        region.pids[index] = os.getpid()
        return region
    path = SHARED_MEMORY / f"{FILE_PREFIX}{name}"
    region = Region(_open(path) or _create(path, max(size, _least_bytes(workers))), index, workers)
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


def _create(path: Path, size: int) -> mmap.mmap:
    """Make the file under a temporary name, then link it: nobody opens a half-sized file, and the first one wins."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size)
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
    """Remove the name, which is left if not all workers have attached."""
    for path in SHARED_MEMORY.glob(f"{FILE_PREFIX}{name}*"):
        path.unlink(missing_ok=True)
