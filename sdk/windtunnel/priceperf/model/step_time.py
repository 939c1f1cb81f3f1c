"""The modelled seconds of one optimizer step, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add
from typing import NamedTuple


class StepTime(NamedTuple):
    """Seconds of one optimizer step on one worker, counted or described.

    ``overlapped_s``: the part of ``compute_s`` + ``memory_s`` that runs at the same time. ``gradients_s`` to
    ``weights_gathered_s``: collectives that nothing hides, by kind; ``hidden_collective_s``: the others. A step from
    counts has all its collectives in ``gradients_s``, the optimizer in ``memory_s``, and no bubble or stragglers.
    ``input_s``: the time that the step waits for its batch.
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
        """Seconds from one step to the next."""
        # Unpacked in one go, which is faster than by name: a matrix of instances asks for it very often.
        (compute, memory, overlapped, host, gradients, tensor, transfer, gathered, _, bubble, optimizer, straggling,
         waited) = self  # fmt: skip
        exposed = tensor + transfer + gathered + gradients
        return compute + memory - overlapped + exposed + host + bubble + optimizer + straggling + waited

    def times(self, factor: float) -> StepTime:
        """The step with every part multiplied by ``factor``: it is not known which part is slower."""
        return StepTime(*[part * factor for part in self])

    def plus(self, other: StepTime) -> StepTime:
        """The sum of two steps that run one after the other."""
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
        """The parts that a breakdown shows, by name: none is negative, and they add up to `total_s`."""
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
