"""The Neuron profiler's context. It measures the device, and there is none here: a script runs in it, and is told so.

Arguments: AWS Neuron documentation, "PyTorch Neuron Profiling API" and "Neuron Explorer user guide".
"""

from __future__ import annotations

import warnings

from torch_neuronx._names import resolver

__all__ = ["profile"]

__getattr__ = resolver(__name__)


class _Context:
    """Nothing happens at its begin and end."""

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        """Called by scripts with ``auto_start=False``."""


def profile(
    port: int = 9012,
    ms_duration: int = 60_000,
    neuron_tensorboard_plugin_dir: str = "logs/plugins/neuron",
    profile_type: str = "operator",
    auto_start: bool = True,
    delete_working: bool = True,
    traced_only: bool = False,
    target: str | None = None,
    output_dir: str | None = None,
    output_path: str | None = None,
) -> _Context:
    """A context in which a script runs as without it: a warning says that no profile is written."""
    warnings.warn(
        "torch_neuronx.experimental.profiler.profile: Windtunnel's NeuronCores write no profile of the device. The "
        "script runs on without one; the job's report has what was counted.",
        stacklevel=2,
    )
    return _Context()
