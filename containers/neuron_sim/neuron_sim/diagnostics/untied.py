"""Tied weights that became separate parameters when the model moved to the device.

For devices such as XLA's, `Module.to` makes a new parameter at each place that holds one: an embedding and a head that
shared their weights are trained separately from then on. Some code ties them again (transformers' Trainer does), so
this is checked only once the model trains.
"""

from __future__ import annotations

import functools
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from neuron_sim.counters import script_lines
from neuron_sim.counters.modules import every_place
from neuron_sim.diagnostics import advice
from neuron_sim.diagnostics.findings import Finding


class Untied:
    """Models whose tied weights became separate in a move."""

    def __init__(self) -> None:
        """No model has been moved."""
        self._moved: list[tuple[weakref.ref[torch.nn.Module], str, list[list[str]]]] = []

    def around_module_to(self, to: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate ``Module.to``: remember which weights were tied, if they are no longer."""

        @functools.wraps(to)
        def watched(module: torch.nn.Module, *arguments: Any, **keywords: Any) -> Any:
            tied = _tied(module)
            result = to(module, *arguments, **keywords)
            if tied and next(_apart(module, tied), None) is not None:
                self._moved.append((weakref.ref(module), script_lines.calling_line(), tied))
            return result

        return watched

    def findings(self) -> Iterator[Finding]:
        """Findings of models that were not tied again, each once. Frozen weights stay equal: they do not count."""
        moved, self._moved = self._moved, []
        for reference, line, tied in moved:
            module = reference()
            if module is not None:
                for names, several in _apart(module, tied):
                    sizes = [parameter.numel() for parameter in several if parameter.requires_grad]
                    if len(sizes) > 1:
                        yield advice.untied_weights(line, names, sum(sizes[1:]))


def _tied(module: torch.nn.Module) -> list[list[str]]:
    """For each parameter that has several names: these names."""
    named: defaultdict[int, list[str]] = defaultdict(list)
    for name, parameter in every_place(module):
        named[id(parameter)].append(name)
    return [names for names in named.values() if len(names) > 1]


def _apart(
    module: torch.nn.Module, tied: list[list[str]]
) -> Iterator[tuple[list[str], list[torch.nn.Parameter]]]:
    """The groups of tied names that are different parameters now, and these parameters."""
    now = dict(every_place(module))
    for names in tied:
        different = {id(now[name]): now[name] for name in names if name in now}
        if len(different) > 1:
            yield names, list(different.values())
