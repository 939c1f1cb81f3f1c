"""Sleeps on a word of shared memory, and wakes processes that sleep there. For Linux on x86-64, as torch_xla is.

On x86-64 reads stay in order, and so do writes; only a read may overtake an earlier write, for which there is `fence`.
"""

from __future__ import annotations

import ctypes
import threading

_SYS_FUTEX = 202
_WAIT = 0
_WAKE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_lock = threading.Lock()


def sleep(address: int, expected: int, seconds: float) -> None:
    """Sleep while the 32-bit word is ``expected``, until woken or ``seconds`` are over. May also return early."""
    timeout = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    _syscall(
        _SYS_FUTEX,
        ctypes.c_void_p(address),
        _WAIT,
        ctypes.c_uint32(expected),
        ctypes.byref(timeout),
        None,
        0,
    )


def wake(address: int) -> None:
    """Wake all that sleep on the word."""
    _syscall(_SYS_FUTEX, ctypes.c_void_p(address), _WAKE, 0x7FFFFFFF, None, None, 0)


def fence() -> None:
    """Order memory: what was written before is visible to others before anything after this is read.

    Python has no fence of its own. Any locked instruction is one, and a free lock costs 0.1 µs.
    """
    _lock.acquire(blocking=False)
    _lock.release()
