"""Finds where the script fetches values from the device, or waits for it: on which line, how often, how long.

torch_xla only counts fetches. So the methods of `torch.Tensor` that fetch a value are wrapped. On a tensor of
the host the wrapper costs one attribute and one call more. Fetched values are checked for NaN, as of a loss.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from neuron_sim.counters import recorder, script_lines, script_time
from neuron_sim.counters.early_results import has_value
from neuron_sim.diagnostics.read_steps import ReadSteps


@dataclass
class Line:
    """The reads of one line."""

    how: dict[str, None] = field(default_factory=dict)
    count: int = 0
    seconds: float = 0.0
    steps: int = 0
    since: int = 0
    until: int = 0
    """The first and the latest of the loop's steps, counted from 1, in which the line read."""
    cuts: int = 0
    again: int = 0
    """How many of its reads cut a step, and after how many the step computed the same again."""
    latest_step: int = -1
    trains: bool = False
    """Whether the line has read in a step that trains."""
    told: bool = False
    """Whether there is a finding of it; then the final figures are reported too, whatever they are."""
    around: ReadSteps = field(default_factory=ReadSteps)
    library: str = ""
    """The library that reads, if the line calls one: see `script_lines.calling_library`."""


@dataclass
class NoNumber:
    """A line whose latest reads gave NaN: how the script writes them, since which training step, how many."""

    how: str
    since: int
    count: int = 0


class HostReads:
    """Counts reads by line, in the script's own thread, but not in step closures, where the advice moves them."""

    def __init__(self, about_to: Callable[[torch.Tensor], None]) -> None:
        """Nothing has been read. ``about_to`` is called with each tensor before it is read."""
        self._about_to = about_to
        self._busy = self._in_closures = False
        self.forget()

    def forget(self) -> None:
        """Count from here on."""
        self.lines: dict[tuple[str, str], Line] = {}
        """By line of the script and `Line.library`: one line may call a trainer's set-up and its loop."""
        self.no_numbers: dict[str, NoNumber] = {}
        self.step = 0
        self.trained = 0
        """Steps that have trained and ended."""
        self.trains = False
        """Whether the current step has computed gradients."""

    def around(
        self, how: str, fetches: Callable[[Any, Any], bool] = lambda arguments, keywords: True
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a method of `torch.Tensor` that fetches its value; ``how``: as a script writes the call.

        ``fetches``: whether a call with these arguments fetches it.
        """

        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def noted(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
                if (
                    not tensor.is_xla
                    or self._busy
                    or not (has_value(tensor) and fetches(arguments, keywords))
                ):
                    return original(tensor, *arguments, **keywords)
                return self._timed(how, original, tensor, arguments, keywords)

            return noted

        return around

    def _timed(
        self, how: str, original: Callable[..., Any], tensor: Any, arguments: Any, keywords: Any
    ) -> Any:
        if not script_time.clock.is_own:
            return original(tensor, *arguments, **keywords)
        started = time.perf_counter()
        # What the method calls in turn (`print` fetches with `.to`) belongs to the same read.
        self._busy = True
        self._about_to(tensor)
        try:
            value = original(tensor, *arguments, **keywords)
        finally:
            self._busy = False
            how = _where(how)
            if not self._in_closures:
                self._count(how, time.perf_counter() - started)
        if tensor.is_floating_point() and tensor.numel() == 1:
            self._look(how, value)
        return value

    @script_time.set_aside
    def _count(self, how: str, seconds: float) -> None:
        where = script_lines.calling_line()
        library = script_lines.calling_library()
        line = self.lines.setdefault((where, library), Line(library=library))
        line.how[how] = None
        line.count += 1
        line.seconds += seconds
        line.latest_step = self.step

    @script_time.set_aside
    def _look(self, how: str, value: Any) -> None:
        while isinstance(value, list):  # `.tolist()` of one value: a list with NaN in it equals itself
            (value,) = value
        if "nan" in value if isinstance(value, str) else bool(value != value):
            new = NoNumber(how, self.trained + self.trains)
            self.no_numbers.setdefault(script_lines.calling_line(), new).count += 1
        elif self.no_numbers:
            self.no_numbers.pop(script_lines.calling_line(), None)

    def around_wait(
        self, how: str, waits: Callable[[Any], bool] = lambda keywords: True
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a function that waits for the device; ``waits``: whether a call with these keywords does.

        Meanwhile the host cannot trace the next step, as when it reads a value of the step before.
        """

        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def waited(*arguments: Any, **keywords: Any) -> Any:
                clock = script_time.clock
                if not waits(keywords) or not clock.is_own or clock.is_aside or self._in_closures:
                    return original(*arguments, **keywords)
                started = time.perf_counter()
                try:
                    return original(*arguments, **keywords)
                finally:
                    recorder.counting.waits = True
                    self._count(how, time.perf_counter() - started)

            return waited

        return around

    def around_closures(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Decorate torch_xla's function that runs a step's closures: their reads do not count."""

        @functools.wraps(run)
        def run_uncounted() -> Any:
            before, self._in_closures = self._in_closures, True
            try:
                return run()
            finally:
                self._in_closures = before

        return run_uncounted


@script_time.set_aside
def _where(how: str) -> str:
    """``how``, and the file of torch that has the call where no line of the script does: `SummaryWriter.add_scalar`."""
    file = script_lines.calling_torch()
    return f"{how} (in {file})" if file and not script_lines.calling_library() else how


def leads_to_host(arguments: Any, keywords: Any) -> bool:
    """Whether `Tensor.to` with these arguments fetches a tensor from the device."""
    target = keywords.get("device", arguments[0] if arguments else None)
    if isinstance(target, torch.Tensor):
        return not target.is_xla
    if isinstance(target, str):
        return target.startswith("cpu")
    return isinstance(target, torch.device) and target.type == "cpu"
