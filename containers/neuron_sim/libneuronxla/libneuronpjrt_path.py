"""Where the plug-in's library is: the module whose presence makes torch_xla choose Neuron."""

from __future__ import annotations

from pathlib import Path


def libneuronpjrt_path() -> str:
    """A path that is never opened: XLA's CPU client runs underneath."""
    return str(Path(__file__).with_name("libneuronpjrt.so"))
