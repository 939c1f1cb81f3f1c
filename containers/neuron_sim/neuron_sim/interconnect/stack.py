"""Finds the line at which another process of this host is, without stopping it.

In each worker the interpreter writes its stack into a nameless file when a signal comes. It does so in C, so also
while the script sleeps, compiles or waits for a file. Who asks finds the file through the worker's entry in /proc.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import re
import signal
import time
from pathlib import Path

from neuron_sim.counters import script_lines

_SIGNAL = signal.SIGRTMIN + 7
"""A signal that no script, library or launcher of ours uses."""
_PATIENCE_S = 0.5
_LINE = re.compile(r'^  File "(.+)", line (\d+) in ', re.M)


def answer() -> int:
    """Make this process answer `line_of`. Returns the descriptor of the file for the answers."""
    descriptor = os.memfd_create("neuron_sim-stack", os.MFD_CLOEXEC)
    # The interpreter appends to the file, and the process that asks empties it first.
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
    faulthandler.register(_SIGNAL, file=descriptor, all_threads=False)
    return descriptor


def line_of(pid: int, descriptor: int) -> str | None:
    """``train.py:88`` of the innermost frame outside libraries; None when it does not answer.

    Blocks for half a second at most.
    """
    try:
        # The signal would end a process without a handler, such as another program that replaced the worker.
        if not _listens(pid):
            return None
        file = Path(f"/proc/{pid}/fd/{descriptor}")
        os.truncate(file, 0)
        os.kill(pid, _SIGNAL)
        end, text, before = time.monotonic() + _PATIENCE_S, "", ""
        while not (text and text == before) and time.monotonic() < end:  # it is written piece by piece
            time.sleep(0.02)
            before, text = text, file.read_text(errors="replace")
    except (OSError, ValueError):
        return None
    found = [(file, line) for file, line in _LINE.findall(text) if script_lines.is_users(file)]
    return f"{Path(found[0][0]).name}:{found[0][1]}" if found else None


def _listens(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.M)
    return caught is not None and bool(int(caught[1], 16) >> (_SIGNAL - 1) & 1)
