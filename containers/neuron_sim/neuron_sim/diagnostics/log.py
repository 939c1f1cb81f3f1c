"""Writes the simulator's own lines into the job's log."""

from __future__ import annotations

import io
import sys

from neuron_sim import settings


def by_lines() -> None:
    """Have this process write whole lines at once.

    `print("loss", 0.5)` unbuffered is four writes, and the toolkit, which reads whatever is there, logs them as up to
    three lines.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # else it is the script's own
            stream.reconfigure(line_buffering=True, write_through=False)


def say(text: str, *, by_any: bool = False) -> None:
    """Write a line to the job's log at once. Only the first of all cores does so, unless ``by_any``."""
    if settings.identity().rank != 0 and not by_any:
        return
    sys.stdout.write(f"[windtunnel] {text}\n")
    sys.stdout.flush()
