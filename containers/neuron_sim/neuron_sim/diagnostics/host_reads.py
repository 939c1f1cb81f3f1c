"""Values that the script fetches from the device: on which line, how often, and how long it waited.

torch_xla only counts them. The methods of `torch.Tensor` through which a script fetches a value are
wrapped; on a tensor of the host the wrapper is one attribute and one call more.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from neuron_sim.counters import script_lines, script_time

_METHODS = {
    "item": ".item()",
    "tolist": ".tolist()",
    "cpu": ".cpu()",
    "numpy": ".numpy()",
    "__bool__": "`if tensor:`",
    "__float__": "float(tensor)",
    "__int__": "int(tensor)",
    "__index__": "a tensor as an index",
    "__repr__": "print(tensor)",
    "__format__": "print(tensor)",
}


@dataclass
class Line:
    """What one line fetched."""

    how: dict[str, None] = field(default_factory=dict)
    count: int = 0
    seconds: float = 0.0
    first_step: int = 0
    steps: int = 0
    pending: int = 0
    latest_step: int = -1


class HostReads:
    """Counts by line, in the script's own thread, and not inside a step's closures: there it is as advised."""

    def __init__(self) -> None:
        """Hook into torch and torch_xla."""
        self._busy = False
        self.forget()
        for name, how in _METHODS.items():
            setattr(torch.Tensor, name, self._noted(getattr(torch.Tensor, name), how))
        torch.Tensor.to = self._noted_to(torch.Tensor.to)
        self._leave_out_closures()

    def forget(self) -> None:
        """Count from here on, in this thread."""
        self.lines: dict[str, Line] = {}
        self.step = 0
        self._thread = threading.get_ident()

    def _noted(self, original: Callable[..., Any], how: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def noted(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if not tensor.is_xla or self._busy:
                return original(tensor, *arguments, **keywords)
            return self._timed(how, original, tensor, arguments, keywords)

        return noted

    def _noted_to(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def noted(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if not tensor.is_xla or self._busy or not _to_host(arguments, keywords):
                return original(tensor, *arguments, **keywords)
            return self._timed('.to("cpu")', original, tensor, arguments, keywords)

        return noted

    def _timed(
        self, how: str, original: Callable[..., Any], tensor: Any, arguments: Any, keywords: Any
    ) -> Any:
        if threading.get_ident() != self._thread:
            return original(tensor, *arguments, **keywords)
        started = time.perf_counter()
        # What it calls in turn (`print` fetches with `.to`) is the same reading.
        self._busy = True
        try:
            return original(tensor, *arguments, **keywords)
        finally:
            self._busy = False
            self._count(how, time.perf_counter() - started)

    @script_time.set_aside
    def _count(self, how: str, seconds: float) -> None:
        where = script_lines.calling_line()
        line = self.lines.get(where)
        if line is None:
            line = self.lines[where] = Line(first_step=self.step)
        line.how[how] = None
        line.count += 1
        line.seconds += seconds
        if line.latest_step != self.step:
            line.latest_step = self.step
            line.steps += 1

    def _leave_out_closures(self) -> None:
        import torch_xla.core.xla_model as xm

        run = xm._run_step_closures

        @functools.wraps(run)
        def run_uncounted() -> Any:
            before, self._busy = self._busy, True
            try:
                return run()
            finally:
                self._busy = before

        xm._run_step_closures = run_uncounted


def _to_host(arguments: Any, keywords: Any) -> bool:
    target = keywords.get("device", arguments[0] if arguments else None)
    if isinstance(target, torch.Tensor):
        return not target.is_xla
    if isinstance(target, str):
        return target.startswith("cpu")
    return isinstance(target, torch.device) and target.type == "cpu"
