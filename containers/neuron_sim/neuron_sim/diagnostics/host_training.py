"""Notices a model that trains on the host's CPU while the cores idle, also in a script that knows no torch_xla.

And one that trains on the device, but whose optimizer was made before: `Module.to` makes new parameters there, other
than for a GPU, and the optimizer keeps those of the CPU, which have no gradients. So it is after a visit to the CPU, as
to save the model: the optimizer keeps those that were on the device before.
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
"""After so many steps of an optimizer it is said."""


class HostTraining:
    """Counts optimizers' steps until one has its parameters on a device."""

    def __init__(self) -> None:
        """Nothing has been trained."""
        self._watches = False
        self._steps = 0
        self._line = "?"
        self._on_device = False
        self._made: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Optimizers, and the line of the script that made each."""
        self._moved: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Parameters in whose place a move has put others, and its line."""
        self._arrived: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Those others, and the line."""
        self._lines: tuple[str, str] | None = None
        """Of an optimizer that holds such, and of the move."""
        self._has_left = False
        """Whether parameters in `_moved` were on the device."""
        self._left: tuple[str, str] | None = None
        """Of an optimizer that holds such, and of the move."""
        self._left_steps = 0

    def around_init(self, initialise: Callable[..., None]) -> Callable[..., None]:
        """Around `Optimizer.__init__`."""

        @functools.wraps(initialise)
        def noted_init(optimizer: Any, *arguments: Any, **keywords: Any) -> None:
            self._made[optimizer] = script_lines.calling_line()
            initialise(optimizer, *arguments, **keywords)

        return noted_init

    def around_module_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Around `Module.to` and `Module.cpu`: remember what they replace, and keep none of it alive."""

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
        """The line that moved it to the device; ``?`` where it was made there."""
        return str(self._arrived.get(parameter, "?"))

    def watch(self) -> None:
        """Be told of optimizers from now on. Idempotent."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if not self._watches:
            self._watches = True
            register_optimizer_step_post_hook(self._optimized)

    def _optimized(self, optimizer: Any, *_: Any) -> None:
        if self._on_device and not self._has_left:
            return
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        if self._on_device:
            self._note_left(self._replaced(optimizer, parameters))
            return
        self._on_device = any(parameter.device.type != "cpu" for parameter in parameters)
        self._steps += 1
        if self._steps == _FIRST:
            self._line = script_lines.calling_line()
            self._lines = self._replaced(optimizer, parameters)
            if (finding := self.finding()) is not None:
                log.say(finding.text)

    def _replaced(self, optimizer: Any, parameters: list[torch.Tensor]) -> tuple[str, str] | None:
        """Where an optimizer was made, and where a move put others in the place of parameters that it holds."""
        moved = next((self._moved[each] for each in parameters if each in self._moved), None)
        return None if moved is None else (self._made.get(optimizer, "?"), moved)

    def _note_left(self, lines: tuple[str, str] | None) -> None:
        """An optimizer on the device has made a step. ``lines``: of `_replaced`; None: it holds the model's own."""
        if lines is None:
            return
        self._left = lines
        self._left_steps += 1
        if self._left_steps == _FIRST and (finding := self.finding()) is not None:
            log.say(finding.text)

    def finding(self) -> Finding | None:
        """What there is to say until now."""
        if self._left is not None and self._left_steps >= _FIRST:
            return advice.model_left_device(*self._left, self._left_steps)
        if self._on_device or self._steps < _FIRST:
            return None
        if self._lines is not None:
            return advice.optimizer_before_move(*self._lines, self._steps)
        return advice.device_unused(self._line, self._steps)


training = HostTraining()
"""Of this process."""
