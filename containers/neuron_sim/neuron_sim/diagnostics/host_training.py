"""Notices a model that trains on the host's CPU while the cores idle, also in a script that knows no torch_xla."""

from __future__ import annotations

from typing import Any

from neuron_sim.counters import script_lines
from neuron_sim.diagnostics import advice, log
from neuron_sim.diagnostics.findings import Finding

_FIRST = 3
"""After so many steps of an optimizer it is said."""


class HostTraining:
    """Counts optimizers' steps until one has its parameters on a device."""

    def __init__(self) -> None:
        """Nothing has been trained."""
        self._watches = False
        self._steps = 0
        self._line = "?"
        self._on_device = False

    def watch(self) -> None:
        """Be told of optimizers from now on. Idempotent."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if not self._watches:
            self._watches = True
            register_optimizer_step_post_hook(self._optimized)

    def _optimized(self, optimizer: Any, *_: Any) -> None:
        if self._on_device:
            return
        parameters = (each for group in optimizer.param_groups for each in group["params"])
        self._on_device = any(parameter.device.type != "cpu" for parameter in parameters)
        self._steps += 1
        if self._steps == _FIRST:
            self._line = script_lines.calling_line()
            if (finding := self.finding()) is not None:
                log.say(finding.text)

    def finding(self) -> Finding | None:
        """What there is to say until now."""
        if self._on_device or self._steps < _FIRST:
            return None
        return advice.device_unused(self._line, self._steps)


training = HostTraining()
"""Of this process."""
