"""Notices optimizers that change nothing, because no weight has a gradient."""

from __future__ import annotations

from typing import Any

from neuron_sim.counters import script_lines
from neuron_sim.diagnostics import advice, findings
from neuron_sim.diagnostics.host_training import training as host_training

_FIRST = 3
"""After how many steps of optimizers there is a finding."""


class Gradients:
    """Counts optimizers' steps until a weight has a gradient."""

    def __init__(self) -> None:
        """No optimizer has stepped."""
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._steps = 0
        self._met = False

    @property
    def are_missing(self) -> bool:
        """Whether optimizers have stepped, and always without a gradient."""
        return self._steps >= _FIRST and not self._met

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Called before an optimizer's step."""
        if not self._met:
            self._met = any(
                each.grad is not None for group in optimizer.param_groups for each in group["params"]
            )

    def after_step(self, *_: Any) -> None:
        """Called after an optimizer's step. One that has other weights than the model has a finding of its own."""
        self._steps += 1
        if self._steps == _FIRST and not self._met and host_training.finding() is None:
            findings.note(advice.no_gradients(script_lines.calling_line(), self._steps))
