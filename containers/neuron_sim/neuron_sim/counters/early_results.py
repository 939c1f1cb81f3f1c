"""Values that a collective has computed here with all that was pending, and that the script then reads in that step.

On trn1 nothing has run there yet: the reading runs a graph of the value alone, with the forward pass in it, and the
step's own graph computes it again. Counted is the graph that torch_xla would make of the loss before its gradients,
which does not run here: of a prediction or an accuracy the forward pass is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import _XLAC
import torch

from neuron_sim.counters import batches, hlo, recorder, script_lines, script_time
from neuron_sim.counters.graphs import Graph


class EarlyResults:
    """Of one step after the other, on the first core of a host."""

    def __init__(self) -> None:
        """No step has begun."""
        self._is_wanted = False
        """Whether a value has been read so: before, it is not worth looking at each loss."""
        self._known: dict[str, Graph] = {}
        """By hash."""
        self._latest = 0
        """Number of the latest loss. torch_xla numbers tensors as they come, and views like what they are of."""
        self.begin()

    def begin(self) -> None:
        """A step begins."""
        self._since = _number(torch.empty(0, device="xla")) if self._is_wanted else self._latest
        self._alone: dict[int, Graph] = {}
        """By a loss's number, the graph of it alone."""

    @script_time.set_aside
    def backward(self, losses: torch.Tensor | Sequence[torch.Tensor]) -> None:
        """Gradients of these are about to be computed."""
        if not recorder.counting.sees_steps:
            return
        for loss in [losses] if isinstance(losses, torch.Tensor) else losses:
            if loss.is_xla:
                self._latest = _number(loss)
                if self._is_wanted and _is_pending(loss):
                    self._alone[self._latest] = self._graph(loss)

    def _graph(self, loss: torch.Tensor) -> Graph:
        name = _XLAC._get_graph_hash([loss]).hex()
        if name not in self._known:
            text = _XLAC._get_xla_tensors_hlo([loss])
            proto = _XLAC._get_xla_tensors_hlo_proto([loss])
            self._known[name] = Graph(name, hlo.cost(text), 0, "?", text, hlo_proto=proto)
        return self._known[name]

    @script_time.set_aside
    def reads(self, value: torch.Tensor) -> None:
        """The script is about to fetch a value from the device."""
        if not self._latest or not recorder.counting.has_exchanged:
            return
        is_pending = _is_pending(value)
        # Of a pending one, what it is computed from and is there.
        needed = _XLAC._get_tensors_xla_device_data_node([value])[0] if is_pending else [_number(value)]
        made = [number for number in needed if number > self._since and number not in batches.sent.numbers]
        if not made:
            return
        self._is_wanted = True
        if self._alone:
            loss = next((loss for loss in self._alone if loss >= min(made)), max(self._alone))
            graph = dataclasses.replace(self._alone[loss], source=script_lines.calling_line())
            recorder.counting.would_run(graph, reads=not is_pending)


def _number(tensor: torch.Tensor) -> int:
    return int(_XLAC._xla_get_tensor_id(tensor))


def _is_pending(value: torch.Tensor) -> bool:
    return bool(_XLAC._check_tensor_need_materialization([value])[0])
