"""The simulator's own words in the job's log."""

from __future__ import annotations

import sys

from neuron_sim import settings


def say(text: str, *, by_any: bool = False) -> None:
    """At once and whole; of all cores the first one speaks, unless what is said is of this very core."""
    if settings.identity().rank != 0 and not by_any:
        return
    sys.stdout.write(f"[windtunnel] {text}\n")
    sys.stdout.flush()
