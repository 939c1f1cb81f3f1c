"""Values that the script reads too early for trn1: after a collective, or right after the end of a step.

Here a collective has executed all that was pending. On trn1 nothing has run by then: the read runs a graph of the value
alone, which contains the forward pass, and the step's own graph computes that again. What is counted for the read is
the graph that torch_xla would make of the loss before its gradients, which does not run here; for a prediction or an
accuracy, the forward pass is the same. If the forward pass has a collective in it, the graphs before the loss count as
well. For a value computed from summed gradients, such as their norm, all graphs of the step so far count once more.

A read right after the end of a step cuts no graph. But the device has just begun: the host waits for it, and cannot
trace the next step meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import _XLAC
import torch

from neuron_sim.counters import batches, hlo, recorder, script_lines, script_time
from neuron_sim.counters.graphs import Graph


class EarlyResults:
    """Finds such reads, one step after the other, on the first core of a host."""

    def __init__(self) -> None:
        """No step has begun."""
        self._is_wanted = False
        """Whether a value has been read after a collective; until then losses need not be looked at."""
        self._known: dict[str, Graph] = {}
        """Graphs of losses, by hash."""
        self._since = 0
        self._trains = False
        """Whether the step has computed gradients."""
        self.begin()

    def begin(self) -> None:
        """Begin a step."""
        # torch_xla's ids of tensors grow with time; a view has the id of its base.
        looks = (self._since or self._trains) and not _XLAC._get_use_eager_mode()
        self._before, self._since = self._since, _number(torch.empty(0, device="xla")) if looks else 0
        self._trains = False
        self._alone: dict[int, tuple[Graph, list[str]]] = {}
        """By a loss's id: the graph of the loss alone, and the graphs before it, if it is computed from the result of a
        collective in the forward pass, such as one that gathers features.
        """

    @script_time.set_aside
    def backward(self, losses: torch.Tensor | Sequence[torch.Tensor]) -> None:
        """Called before the gradients of these losses are computed."""
        if not recorder.counting.sees_steps:
            return
        for loss in [losses] if isinstance(losses, torch.Tensor) else losses:
            if isinstance(loss, torch.Tensor) and loss.is_xla and has_value(loss):
                self._trains = True
                if self._is_wanted and _is_pending(loss):
                    self._alone[_number(loss)] = self._graph(loss), self._before_it(loss)

    def _graph(self, loss: torch.Tensor) -> Graph:
        name = _XLAC._get_graph_hash([loss]).hex()
        if name not in self._known:
            text = hlo.as_rounded(_XLAC._get_xla_tensors_hlo([loss]))
            proto = _XLAC._get_xla_tensors_hlo_proto([loss])
            self._known[name] = Graph(name, hlo.cost(text), 0, "?", text, hlo_proto=proto)
        return self._known[name]

    def _before_it(self, loss: torch.Tensor) -> list[str]:
        needed = _XLAC._get_tensors_xla_device_data_node([loss])[0]
        return recorder.counting.pieces() if self._made(needed, self._since) else []

    @script_time.set_aside
    def reads(self, value: torch.Tensor) -> None:
        """Called before the script fetches a value from the device."""
        if not (self._trains or self._since):
            return  # nothing has trained yet
        if _is_pending(value):
            if recorder.counting.has_exchanged:
                # The ids of the computed tensors that it is computed from.
                self._is_computed_from(_XLAC._get_tensors_xla_device_data_node([value])[0])
        elif made := self._made([_number(value)], self._since):
            if recorder.counting.has_exchanged:
                self._again(made, is_part=False)
        elif not self._trains and self._made([_number(value)], self._before):
            recorder.counting.waits = True

    def _is_computed_from(self, needed: Sequence[int]) -> None:
        if not batches.summed.isdisjoint(needed):
            recorder.counting.would_run_again()
        elif made := self._made(needed, self._since):
            self._again(made, is_part=True)

    def _made(self, numbers: Sequence[int], since: int) -> list[int]:
        """The ids among these of tensors that are newer than ``since`` and were made on the device."""
        return [number for number in numbers if number > since and number not in batches.sent.numbers]

    def _again(self, made: Sequence[int], *, is_part: bool) -> None:
        self._is_wanted = True
        if self._alone:
            loss = next((loss for loss in self._alone if loss >= min(made)), max(self._alone))
            graph, before = self._alone[loss]
            graph = dataclasses.replace(graph, source=script_lines.calling_line())
            recorder.counting.would_run_again(before)
            recorder.counting.would_run(graph, is_part=is_part)
        elif is_part and not self._trains and torch.is_grad_enabled():
            recorder.counting.would_run_again()  # read before its gradients: all that has run is the forward pass


def has_value(tensor: torch.Tensor) -> bool:
    """Whether it is a plain tensor. One that Python code dispatches has no value of its own: it is a fake tensor of
    torch's tracing, or wraps another tensor, which is seen itself.
    """
    return type(tensor).__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl


def _number(tensor: torch.Tensor) -> int:
    return int(_XLAC._xla_get_tensor_id(tensor))


def _is_pending(value: torch.Tensor) -> bool:
    return bool(_XLAC._check_tensor_need_materialization([value])[0])
