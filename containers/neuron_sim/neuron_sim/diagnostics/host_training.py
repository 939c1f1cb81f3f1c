"""Notices a model that trains on the host's CPU while the cores idle, also in a script without torch_xla.

Also a model on the device whose optimizer was made before the move: unlike for a GPU, `Module.to` makes new
parameters, and the optimizer keeps those of the CPU, which get no gradients. The same happens when a model goes to the
CPU and back, for example to be saved: the optimizer keeps the parameters that were on the device before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary, WeakIdRef

from neuron_sim.counters import script_lines
from neuron_sim.counters.modules import parameters as parameters_of
from neuron_sim.diagnostics import advice, log
from neuron_sim.diagnostics.findings import Finding

_FIRST = 3
"""After how many steps of an optimizer there is a finding."""


class HostTraining:
    """Counts optimizers' steps until one has its parameters on a device."""

    def __init__(self) -> None:
        """No optimizer has stepped."""
        self._watches = False
        self._steps = 0
        self._line = "?"
        self._on_device = False
        self._made: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Optimizers, and the line of the script that made each."""
        self._moved: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Parameters that a move has replaced, and the line of the move."""
        self._arrived: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Parameters that have come to the device, and the line of the move."""
        self._replaced: tuple[str, str] | None = None
        """Where an optimizer that holds replaced parameters was made, and the line of the move."""
        self._has_left = False
        """Whether parameters in `_moved` were on the device."""
        self._left: tuple[str, str] | None = None
        """As `_replaced`, for parameters that were on the device."""
        self._left_steps = 0

    def around_init(self, initialise: Callable[..., None]) -> Callable[..., None]:
        """Decorate `Optimizer.__init__`: note the line."""

        @functools.wraps(initialise)
        def noted_init(optimizer: Any, *arguments: Any, **keywords: Any) -> None:
            self._made[optimizer] = script_lines.calling_line()
            initialise(optimizer, *arguments, **keywords)

        return noted_init

    def around_module_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `Module.to` and `Module.cpu`: remember which parameters they replace, by weak references."""

        @functools.wraps(to)
        def noted_to(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            before = [WeakIdRef(parameter) for parameter in parameters_of(module)]
            result = to(module, *arguments, **keywords)
            if before:
                self._note_move(before, list(parameters_of(module)), script_lines.calling_line())
            return result

        return noted_to

    def _note_move(self, before: list[WeakIdRef], after: list[torch.nn.Parameter], line: str) -> None:
        stayed = {id(parameter) for parameter in after}
        for parameter in (reference() for reference in before):
            if parameter is not None and id(parameter) not in stayed:
                self._moved[parameter] = line
                self._has_left = self._has_left or parameter.is_xla
        for parameter in after:
            if parameter.is_xla:
                self._arrived[parameter] = line

    def moved_at(self, parameter: torch.Tensor) -> str:
        """The line that moved a parameter to the device; ``?`` if it was made there."""
        return str(self._arrived.get(parameter, "?"))

    def watch(self) -> None:
        """Watch the steps of all optimizers from now on. Idempotent."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if not self._watches:
            self._watches = True
            register_optimizer_step_post_hook(self._optimized)

    def _optimized(self, optimizer: Any, *_: Any) -> None:
        if self._on_device and not self._has_left:
            return
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        moved = next((self._moved[each] for each in parameters if each in self._moved), None)
        replaced = None if moved is None else (self._made.get(optimizer, "?"), moved)
        if not self._on_device:
            self._on_device = any(parameter.device.type != "cpu" for parameter in parameters)
            self._steps += 1
            if self._steps == _FIRST:
                self._line, self._replaced = script_lines.calling_line(), replaced
                self._say()
        elif replaced is not None:
            self._left = replaced
            self._left_steps += 1
            if self._left_steps == _FIRST:
                self._say()

    def _say(self) -> None:
        if (finding := self.finding()) is not None:
            log.say(finding.text)

    def finding(self) -> Finding | None:
        """The finding so far; None without one."""
        if self._left is not None and self._left_steps >= _FIRST:
            return advice.model_left_device(*self._left, self._left_steps)
        if self._on_device or self._steps < _FIRST:
            return None
        if self._replaced is not None:
            return advice.optimizer_before_move(*self._replaced, self._steps)
        return advice.device_unused(self._line, self._steps)


training = HostTraining()
"""The one of this process."""
