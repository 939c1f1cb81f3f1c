"""The simulator's own words in the job's log."""

from __future__ import annotations

import sys

from neuron_sim import settings


def say(text: str) -> None:
    """At once and whole; of all cores the first one speaks."""
    if settings.identity().rank != 0:
        return
    sys.stdout.write(f"[windtunnel] {text}\n")
    sys.stdout.flush()
