"""The path of the plug-in's library. torch_xla chooses the Neuron device if this module exists."""

from __future__ import annotations

from pathlib import Path


def libneuronpjrt_path() -> str:
    """A path that is never opened: XLA's CPU client runs underneath."""
    return str(Path(__file__).with_name("libneuronpjrt.so"))
