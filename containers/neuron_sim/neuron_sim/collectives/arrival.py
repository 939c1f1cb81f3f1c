"""Who has arrived: a barrier over any group of workers, without atomic operations.

Worker i counts in `arrivals[i][j]` how often it has met worker j, and is the only
writer of row i. Having met everyone means: for each j, `arrivals[j][i]` has
reached `arrivals[i][j]`. Waiters sleep in a futex on the peer's generation word,
and wake every half second to see whether the peer is still alive.
"""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from neuron_sim.collectives.region import LEFT, Region
from neuron_sim.errors import NeuronSimError, PeerLostError

_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
_FUTEX_WAIT = 0
_FUTEX_WAKE = 1
_CHECK_S = 0.5
_SPINS = 20


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_libc = ctypes.CDLL(None, use_errno=True)
_CHECK = _Timespec(0, int(_CHECK_S * 1e9))


class Arrival:
    """This worker's side of all barriers in a region."""

    def __init__(self, region: Region, timeout_s: float) -> None:
        """``timeout_s``: how long a peer may take before the collective is given up."""
        if _SYS_FUTEX is None:
            raise NeuronSimError(
                f"shared-memory collectives need Linux on x86_64 or aarch64, not {platform.machine()}"
            )
        self._region = region
        self._me = region.index
        self._timeout_s = timeout_s

    def meet(self, group: Sequence[int]) -> None:
        """Return once every worker of ``group`` (local indices, this one included) has called it.

        Raises:
            PeerLostError: a peer has ended, or did not come in time.
        """
        region, me = self._region, self._me
        mine = region.arrivals[me]
        for peer in group:
            mine[peer] += 1
        region.generation[me] += 1
        self._wake(me)
        for peer in group:
            if peer != me:
                self._await(peer, int(mine[peer]))

    def _await(self, peer: int, target: int) -> None:
        arrived = self._region.arrivals[peer]
        generation = self._region.generation
        for _ in range(_SPINS):
            # Differences modulo 2**32: the counters may wrap.
            if _reached(int(arrived[self._me]), target):
                return
            time.sleep(0)
        deadline = time.monotonic() + self._timeout_s
        while True:
            seen = int(generation[peer])
            if _reached(int(arrived[self._me]), target):
                return
            self._sleep(peer, seen)
            if _reached(int(arrived[self._me]), target):
                return
            # In this order: a peer may come and end between two looks.
            if self._has_ended(peer) and not _reached(int(arrived[self._me]), target):
                raise PeerLostError(
                    f"local rank {peer} has ended while local rank {self._me} waited for it in a collective: "
                    "all ranks must call the same collectives equally often"
                )
            if time.monotonic() > deadline:
                raise PeerLostError(
                    f"local rank {peer} did not come within {self._timeout_s:.0f} s "
                    f"while local rank {self._me} waited for it"
                )

    def _has_ended(self, peer: int) -> bool:
        pid = int(self._region.pids[peer])
        # 0: it has not attached yet, and may still be importing.
        return pid == LEFT or (pid != 0 and not _alive(pid))

    def _wake(self, worker: int) -> None:
        address = self._region.generation_address + 4 * worker
        _libc.syscall(_SYS_FUTEX, ctypes.c_void_p(address), _FUTEX_WAKE, 0x7FFFFFFF, None, None, 0)

    def _sleep(self, worker: int, seen: int) -> None:
        """Sleep until the worker's generation is no longer ``seen``, or for a check interval."""
        address = self._region.generation_address + 4 * worker
        _libc.syscall(
            _SYS_FUTEX,
            ctypes.c_void_p(address),
            _FUTEX_WAIT,
            ctypes.c_uint32(seen),
            ctypes.byref(_CHECK),
            None,
            0,
        )


def _reached(count: int, target: int) -> bool:
    return ((count - target) & 0xFFFFFFFF) < 0x80000000


def _alive(pid: int) -> bool:
    """Whether the process runs; a zombie has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"
