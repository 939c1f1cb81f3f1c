"""NEURON_USE_EAGER_DEBUG_MODE=1: torch_xla's eager mode, in which each operation is compiled and run by itself.

Source: AWS Neuron documentation, "How to debug models in PyTorch NeuronX", "Using Eager Debug Mode".
"""

from __future__ import annotations

import _XLAC

from neuron_sim import settings
from neuron_sim.counters import recorder
from neuron_sim.diagnostics import advice, findings

_decided = False


def decide() -> None:
    """Turn the mode on if the variable asks for it. Called when the device is used; idempotent."""
    global _decided
    variable = settings.eager_debug_mode()
    if _decided or not variable:
        return
    _decided = True
    _XLAC._set_use_eager_mode(True)
    findings.note(advice.eager_debug_mode(variable))


def before_change() -> None:
    """Before eager mode is left, as for each call of a `torch_xla.compile` function: count the graphs so far, then
    remove XLA's dumps of eager operations, which would be taken for those of the next graph.
    """
    counting = recorder.counting
    if counting.graphs is not None and _XLAC._get_use_eager_mode():
        counting.look()
        counting.graphs.drop_dumps()
