"""Seconds of one optimizer step, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import NamedTuple


class StepTime(NamedTuple):
    """Seconds of one optimizer step on one worker, counted or described.

    ``overlapped_s`` is the part of ``compute_s`` + ``memory_s`` that runs at the same time. Of collectives only
    the part that nothing hides is told by kind; ``hidden_collective_s`` is the rest. Counts have all of them in
    ``gradients_s`` and the optimizer in ``memory_s``, and neither a bubble nor stragglers. ``input_s``: what the step
    waits for its batch.
    """

    compute_s: float
    memory_s: float
    overlapped_s: float
    host_s: float
    gradients_s: float
    tensor_parallel_s: float = 0.0
    pipeline_transfer_s: float = 0.0
    weights_gathered_s: float = 0.0
    hidden_collective_s: float = 0.0
    bubble_s: float = 0.0
    optimizer_s: float = 0.0
    straggling_s: float = 0.0
    input_s: float = 0.0

    @property
    def total_s(self) -> float:
        """From one step to the next."""
        # At once and not by name: it is asked for several times in each cell of a matrix.
        (compute, memory, overlapped, host, gradients, tensor, transfer, gathered, _, bubble, optimizer, straggling,
         waited) = self  # fmt: skip
        exposed = tensor + transfer + gathered + gradients
        return compute + memory - overlapped + exposed + host + bubble + optimizer + straggling + waited

    def times(self, factor: float) -> StepTime:
        """Every part of the step longer by a factor: which of them is, is not known."""
        return StepTime(*[part * factor for part in self])

    def plus(self, other: StepTime) -> StepTime:
        """One after the other."""
        return StepTime(*map(add, self, other))

    @property
    def exposed_collective_s(self) -> float:
        """The collectives' time that nothing hides."""
        return self.tensor_parallel_s + self.pipeline_transfer_s + self.weights_gathered_s + self.gradients_s

    @property
    def collective_s(self) -> float:
        """All of the collectives' time."""
        return self.exposed_collective_s + self.hidden_collective_s

    @property
    def parts(self) -> Mapping[str, float]:
        """Parts by name that add up to `total_s`, none negative: what a breakdown shows."""
        return {
            "compute": self.compute_s,
            "memory not behind compute": self.memory_s - self.overlapped_s,
            "tensor-parallel collectives": self.tensor_parallel_s,
            "transfers between stages": self.pipeline_transfer_s,
            "gathered weights": self.weights_gathered_s,
            "gradients": self.gradients_s,
            "pipeline bubble": self.bubble_s,
            "optimizer": self.optimizer_s,
            "host": self.host_s,
            "stragglers": self.straggling_s,
            "waiting for input": self.input_s,
        }
