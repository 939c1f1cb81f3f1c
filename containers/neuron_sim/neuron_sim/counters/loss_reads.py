"""Losses that are read behind a collective, which has computed them here with all that was pending.

On trn1 nothing has run there yet: the reading runs a graph of the loss alone, and the step's own computes it again. The
graph is the one that torch_xla would make of the loss before its gradients. It is counted, and does not run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import _XLAC
import torch

from neuron_sim.counters import hlo, recorder, script_lines, script_time
from neuron_sim.counters.graphs import Graph


class LossReads:
    """Of one step after the other, on the first core of a host."""

    def __init__(self) -> None:
        """No step has begun."""
        self._is_wanted = False
        """Whether a loss has been read so: before, it is not worth looking at each."""
        self._known: dict[str, Graph] = {}
        """By hash."""
        self._latest = 0
        """Number of the latest loss: torch_xla numbers tensors as they come, and views like what they are of."""
        self.begin()

    def begin(self) -> None:
        """A step begins."""
        self._since = self._latest
        self._alone: dict[int, Graph] = {}
        """By a loss's number, the graph of it alone."""

    @script_time.set_aside
    def backward(self, losses: torch.Tensor | Sequence[torch.Tensor]) -> None:
        """Gradients of these are about to be computed."""
        if not recorder.counting.sees_steps:
            return
        for loss in [losses] if isinstance(losses, torch.Tensor) else losses:
            if loss.is_xla:
                number = _XLAC._xla_get_tensor_id(loss)
                self._latest = max(self._latest, number)
                if self._is_wanted and _is_pending(loss):
                    self._alone[number] = self._graph(loss)

    def _graph(self, loss: torch.Tensor) -> Graph:
        name = _XLAC._get_graph_hash([loss]).hex()
        if name not in self._known:
            text = _XLAC._get_xla_tensors_hlo([loss])
            proto = _XLAC._get_xla_tensors_hlo_proto([loss])
            self._known[name] = Graph(name, hlo.cost(text), 0, "?", text, hlo_proto=proto)
        return self._known[name]

    @script_time.set_aside
    def reads(self, value: torch.Tensor) -> None:
        """The script is about to fetch a value from the device.

        Any single number counts that came into being after the losses of the step before and is computed already, as an
        accuracy may be: what it is computed from is what a loss is computed from.
        """
        if not self._latest or value.numel() != 1 or not value.is_floating_point():
            return
        number = _XLAC._xla_get_tensor_id(value)
        if not self._since < number <= self._latest or _is_pending(value):
            return
        self._is_wanted = True
        graph = next((graph for loss, graph in self._alone.items() if loss >= number), None)
        if graph is not None:
            recorder.counting.would_run(dataclasses.replace(graph, source=script_lines.calling_line()))


def _is_pending(value: torch.Tensor) -> bool:
    return bool(_XLAC._check_tensor_need_materialization([value])[0])
