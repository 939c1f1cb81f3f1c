"""What a training needs of a worker's memory: enough to tell whether activations had to be recomputed.

Published tables often do not say. The rule reproduces the column "Activation
Checkpointing" of all 34 published MPT rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from .catalog import InstanceType
from .training import Recompute, Training

ACTIVATION_BYTES = 34
"""Bytes that a layer keeps for each token and element of the hidden size, in 16 bits, attention scores
left out (Korthikanti et al. 2022, "Reducing activation recomputation", equation 2)."""
SCORE_BYTES = 5
"""Bytes that eager attention keeps for each score (the same equation)."""
STATE_BYTES = 16
"""Weight, gradient and fp32 optimizer state of one parameter in 16-bit training."""
USABLE = 0.9
"""Part of the memory that tensors can use; the rest goes to buffers and fragments. Assumption."""
_BYTES_PER_GIB = 2**30


@dataclass(frozen=True)
class MemoryNeed:
    """What a job needs of one worker's memory, and what there is. Bytes."""

    needed_bytes: float
    usable_bytes: float

    @property
    def fits(self) -> bool:
        """Whether it does."""
        return self.needed_bytes <= self.usable_bytes


def activation_bytes(training: Training) -> float:
    """Of one worker's microbatches in flight, nothing recomputed."""
    model, tp = training.architecture, training.tensor_parallel
    per_token = ACTIVATION_BYTES * model.hidden_size
    if training.attention == "eager":
        per_token += SCORE_BYTES * model.attention_heads * training.sequence_length
    stage = model.layers / training.pipeline_parallel
    in_flight = min(training.microbatches, training.pipeline_parallel)
    return per_token * training.tokens * stage * in_flight / tp * training.vector_bytes / 2


def state_bytes(training: Training) -> float:
    """Weights, gradients and optimizer state of one worker."""
    shared = training.data_parallel if training.zero == "full" else 1
    return STATE_BYTES * training.worker_parameters / shared


def needed_recompute(training: Training, instance: InstanceType) -> Recompute:
    """``none`` when all activations fit beside the state, else ``full``."""
    usable = instance.core_memory_gib * _BYTES_PER_GIB * USABLE
    return "none" if activation_bytes(training) + state_bytes(training) <= usable else "full"
