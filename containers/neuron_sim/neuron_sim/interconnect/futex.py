"""Sleeps on a word of shared memory, and wakes processes that sleep there. Linux only."""

from __future__ import annotations

import ctypes
import platform
import threading

from neuron_sim.errors import NeuronSimError

_MACHINE = platform.machine()
_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(_MACHINE)
_WAIT = 0
_WAKE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_lock = threading.Lock()
_own_word = ctypes.c_uint32(0)


def require() -> None:
    """Check that this machine's futexes can be used.

    Raises:
        NeuronSimError: they cannot.
    """
    if _SYS_FUTEX is None:
        raise NeuronSimError(
            f"shared-memory collectives need Linux on x86_64 or aarch64, not {platform.machine()}"
        )


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

    Python has no fence of its own. On x86 any locked instruction is one, and a free
    lock costs 0.1 µs; elsewhere the kernel's futex, which has a full fence inside.
    """
    if _MACHINE == "x86_64":
        _lock.acquire(blocking=False)
        _lock.release()
    else:
        wake(ctypes.addressof(_own_word))


def after_read() -> None:
    """Order memory: later reads stay behind earlier ones. x86 does so by itself."""
    if _MACHINE != "x86_64":
        fence()
