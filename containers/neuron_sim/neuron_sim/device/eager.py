"""NEURON_USE_EAGER_DEBUG_MODE=1: torch_xla's eager mode, in which each operation is compiled and run by itself.

Source: AWS Neuron documentation, "How to debug models in PyTorch NeuronX", "Using Eager Debug Mode".
"""

from __future__ import annotations

from collections.abc import Callable

import _XLAC

from neuron_sim import settings
from neuron_sim.counters import recorder
from neuron_sim.diagnostics import advice
from neuron_sim.diagnostics.findings import Finding

_note: Callable[[Finding], None]
_decided = False


def start(note: Callable[[Finding], None]) -> None:
    """Until the first use of the device a script may set the variable."""
    global _note
    _note = note


def decide() -> None:
    """The device is used, so what the variable says now holds. Idempotent."""
    global _decided
    variable = settings.eager_debug_mode()
    if _decided or not variable:
        return
    _decided = True
    _XLAC._set_use_eager_mode(True)
    _note(advice.eager_debug_mode(variable))


def before_change() -> None:
    """The mode begins or ends, as it does around each call of what `torch_xla.compile` has made: the graph of that is
    counted, and XLA's files of what has run one by one are none of it.
    """
    counting = recorder.counting
    if counting.graphs is not None and _XLAC._get_use_eager_mode():
        counting.look()
        counting.graphs.drop_dumps()
