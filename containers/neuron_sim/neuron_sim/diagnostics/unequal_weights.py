"""Whether the cores of a host, which sum their gradients, have begun with the same weights.

Without a seed, each core draws other initial weights, of a model or of a new head on a model from a file. Sums of
gradients keep the difference: the loss falls, but each core trains its weights with the gradients of others. On GPUs
DistributedDataParallel sends rank 0's weights to all; a script that wraps no model sends none.
So each core leaves some values of its weights for the others, once the first update has been computed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from neuron_sim.counters import modules, script_time
from neuron_sim.diagnostics.host_training import training as host_training
from neuron_sim.diagnostics.meeting import Meeting

_VALUES = 16
"""How many values of each weight are compared, spread over it."""
_STEPS = range(2, 6)
"""Before which steps of an optimizer weights are looked at: the first update may be pending longer, or for ever."""
_LEAST = 0.05
"""The least ratio of the mean difference to the mean value that is reported. Other random numbers make more than 1,
stochastic rounding of bf16 less than 0.01.
"""


Look = Callable[[torch.Tensor], torch.Tensor | None]
"""Gives the values of a computed tensor, None for any other. They are to be read only, and at once."""


class UnequalWeights:
    """Compares some values of the optimizers' weight matrices. Vectors begin as zeros or ones, with any seed."""

    def __init__(self, meeting: Meeting, look: Look) -> None:
        """No optimizer has made a step."""
        self._look = look
        self._meeting = meeting
        self._steps: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """For each optimizer: its number, in the order of first steps, and how many steps it has begun."""
        self._values: dict[str, list[tuple[str, list[float]]]] = {}
        """By optimizer and step: when the next step begins, one core may have computed the update, another not yet."""
        self._line = "?"
        self.count = 0
        """How many elements those weights have."""

    @script_time.set_aside
    def before_step(self, optimizer: Any) -> None:
        """Leave values of what the optimizer's last step has made, if that is computed already."""
        if self._meeting.has_left:
            return
        if not self._steps:
            self._meeting.clear()
        number, steps = self._steps.get(optimizer, (len(self._steps), 0))
        self._steps[optimizer] = number, steps + 1
        if steps + 1 in _STEPS:
            try:
                self._leave(optimizer, f"{number} {steps + 1}")
            except Exception:  # noqa: BLE001 - a script's own module may refuse to be asked: no reason to end a training
                self._meeting.has_left = True

    def _leave(self, optimizer: Any, step: str) -> None:
        weights = list(_weights(optimizer))
        names = _names() if weights else {}
        weights = [each for each in weights if id(each) in names]
        looked = ((names[id(each)], some(self._look(each))) for each in weights)
        values = [(name, found) for name, found in looked if found is not None]
        if values and len(values) == len(weights):
            if not self._values:
                self._line = host_training.moved_at(weights[0])
                self.count = sum(each.numel() for each in weights)
            self._values[step] = values
            self._meeting.leave(json.dumps(self._values), more=True)

    def other(self, ranks: list[int]) -> tuple[str, int, list[str]] | None:
        """The line that moved this core's weights to the device, the first rank with others, and their names."""
        left = {rank: json.loads(text) for rank, text in self._meeting.left().items()}
        mine = left.get(self._meeting.rank, {})
        for rank in ranks:
            theirs = left.get(rank, {})
            for step in (step for step in mine if step in theirs):
                names, others = ([name for name, _ in values[step]] for values in (mine, theirs))
                pairs = zip(mine[step], theirs[step], strict=False)
                apart = [name for (name, my), (_, their) in pairs if differ(my, their)]
                if names == others and apart:
                    return self._line, rank, apart
        return None


def _weights(optimizer: Any) -> Iterator[torch.Tensor]:
    """The weights that should be equal on all cores: not shards of FSDP and of tensor parallelism."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            is_shard = hasattr(weight, "_orig_size") or getattr(weight, "tensor_model_parallel", False)
            is_matrix = weight.dim() > 1 and weight.numel() > 0
            if weight.requires_grad and weight.is_xla and is_matrix and not is_shard:
                yield weight


def _names() -> dict[int, str]:
    """The longest name of each parameter, which is its name in the outermost module. ZeRO-1's shards have none."""
    names: dict[int, str] = {}
    for module in modules.live():
        for name, parameter in modules.named_parameters(module):
            names[id(parameter)] = max(names.get(id(parameter), ""), name, key=len)
    return names


def some(weight: torch.Tensor | None) -> list[float] | None:
    """Some values, spread over a tensor."""
    if weight is None:
        return None
    flat = weight.reshape(-1)
    return [float(value) for value in flat[:: max(1, flat.numel() // _VALUES)][:_VALUES]]


def differ(mine: list[float], theirs: list[float], least: float = _LEAST) -> bool:
    """Whether two cores' values differ by more than this share of them."""
    difference = sum(abs(one - other) for one, other in zip(mine, theirs, strict=False))
    return difference > least * sum(map(abs, [*mine, *theirs])) / 2
