"""What a training needs of a worker's memory: whether it fits, and whether activations had to be recomputed.

Published tables often do not say. The rule reproduces the column "Activation
Checkpointing" of all published MPT rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..instances import GIB, InstanceType
from .architectures import Architecture
from .training_settings import DTYPE_BYTES, Attention, Recompute, Training, ZeroStage

ACTIVATION_BYTES = 18
"""Bytes that a layer keeps for each token and element of the hidden size, in 16 bits, attention scores and the
feed-forward network left out (Korthikanti et al. 2022, "Reducing activation recomputation", equation 2: 34 in all,
16 of them of a network four times as wide)."""
FFN_BYTES = 2
"""The same for each element of the network: what each projection gives, and what the last one takes."""
SCORE_BYTES = 5
"""Bytes that eager attention keeps for each score (the same equation)."""
STATE_BYTES = 16
"""Weight, gradient and fp32 optimizer state of one parameter in 16-bit training."""
USABLE = 0.92
"""Part of the memory that tensors can use; the rest goes to buffers and fragments. Assumption."""


class MemoryNeed(NamedTuple):
    """What a job needs of one worker's memory, and what there is. Bytes."""

    needed_bytes: float
    usable_bytes: float

    @property
    def fits(self) -> bool:
        """Whether it does."""
        return self.needed_bytes <= self.usable_bytes


def usable_bytes(instance: InstanceType) -> float:
    """What tensors can use of one worker's memory."""
    return instance.core_memory_gib * GIB * USABLE


def activation_bytes(training: Training, *, scores: bool = True) -> float:
    """Of one worker's microbatches in flight, nothing recomputed. ``scores``: with those of eager attention."""
    model, tp = training.architecture, training.tensor_parallel
    per_token = ACTIVATION_BYTES * model.hidden_size
    per_token += FFN_BYTES * (model.up_projections + 1) * model.ffn_hidden_size
    if scores and training.attention == "eager":
        per_token += SCORE_BYTES * model.attention_heads * training.sequence_length
    stage = model.layers / training.pipeline_parallel
    in_flight = min(training.microbatches, training.pipeline_parallel)
    return per_token * training.tokens * stage * in_flight / tp * training.vector_bytes / 2


def state_bytes(training: Training) -> float:
    """Weights, gradients and optimizer state of one worker; frozen weights have nothing beside them."""
    shared = training.data_parallel if training.zero == "full" else 1
    frozen = 0.0 if training.lora is None else _frozen_bytes(training)
    return (STATE_BYTES * training.worker_trained + frozen) / shared


def _frozen_bytes(training: Training) -> float:
    return training.worker_parameters * DTYPE_BYTES[training.storage_dtype]


def crowding(training: Training, instance: InstanceType) -> float:
    """0 where fully shared weights, gradients and optimizer state take up to half of the memory, 1 where all of it.

    What is left has to hold gathered layers and activations in turn: the allocator frees, waits and starts again.
    """
    if training.zero != "full":
        return 0.0
    return min(1.0, max(0.0, 2 * state_bytes(training) / (instance.core_memory_gib * GIB) - 1))


def needed_recompute(training: Training, instance: InstanceType) -> Recompute:
    """``none`` when all activations fit beside the state, else ``full``."""
    needed = activation_bytes(training) + state_bytes(training)
    return "none" if needed <= usable_bytes(instance) else "full"


def memory_need(training: Training, instance: InstanceType) -> MemoryNeed:
    """What one worker holds at its fullest: state, activations kept for the backward pass, and logits.

    All published rows fit by this rule, as they did. Where a batch does not divide, a mean pass may have less than a
    sequence, which no pass has.
    """
    if training.microbatch < 1:
        batch = training.data_parallel * training.microbatches
        training = replace(training, microbatch=1.0, global_batch=batch)
    needed = _split_state_bytes(training, instance) + _kept_bytes(training)
    return MemoryNeed(needed, usable_bytes(instance))


def usual_recompute(tensor_parallel: int, attention: Attention, instance: InstanceType) -> Recompute:
    """What scripts recompute of a model that fits: with tensor parallelism ``selective``, its libraries' default.

    On GPUs nothing where attention is flash, which keeps no scores that recomputing would save.
    """
    saves = attention == "eager" or instance.is_neuron
    return "selective" if tensor_parallel > 1 and saves else "none"


def usual_attention(
    model: Architecture, matmul_dtype: str, instance: InstanceType
) -> tuple[Attention, str | None]:
    """What published scripts use for such a model where nothing is said, and why (None: nothing to say)."""
    if instance.is_neuron and model.flash_on_neuron:
        return "flash", "Llama on trn1 is taken to use the flash attention kernel"
    if not instance.is_neuron and model.is_causal and DTYPE_BYTES[matmul_dtype] <= 2:
        return "flash", "language models in 16 or 8 bits on GPUs are taken to use flash attention"
    return "eager", None


def attention_today(model: Architecture, matmul_dtype: str, instance: InstanceType) -> Attention:
    """What a script of today uses where nothing is said: on GPUs torch's `scaled_dot_product_attention`, whose kernels
    take fp32 too, also where published tables of its time were eager, as all of encoders are.
    """
    return usual_attention(model, matmul_dtype, instance)[0] if instance.is_neuron else "flash"


def usual_gradient_bytes(dtype: str, zero: ZeroStage, instance: InstanceType) -> int:
    """Bytes a parameter in the reduction of gradients where nothing is said: those of the weights' ``dtype``.

    With ZeRO-1 on NeuronCores 4: NxD's standard mixed precision (Neuron 2.20) accumulates them in fp32.
    """
    return 4 if instance.is_neuron and zero == "optimizer" else DTYPE_BYTES[dtype]


def scores_fit(training: Training, instance: InstanceType) -> bool:
    """Whether the scores of one layer of eager attention leave half of the memory."""
    heads = training.architecture.attention_heads / training.tensor_parallel
    scores = SCORE_BYTES * training.microbatch * heads * training.sequence_length**2
    return scores / GIB <= instance.core_memory_gib / 2


def _split_state_bytes(training: Training, instance: InstanceType) -> float:
    """Weights, gradients, fp32 moments, and fp32 weights beside 16-bit ones, shared as ZeRO says.

    On trn1 stochastic rounding stands for the fp32 weights, but for libraries with ZeRO, which keep them:
    without this AWS's published GPT-3 6.7B would not have fitted.
    """
    storage = DTYPE_BYTES[training.storage_dtype]
    copies = storage < 4 and not (instance.is_neuron and training.zero == "none")
    optimizer = 4 * training.moments + (4 if copies else 0)
    shared_all = training.data_parallel if training.zero == "full" else 1
    shared_optimizer = 1 if training.zero == "none" else training.data_parallel
    weights = (storage + training.gradient_bytes) / shared_all
    trained = training.worker_trained * (weights + optimizer / shared_optimizer)
    return trained if training.lora is None else trained + _frozen_bytes(training) / shared_all


def _kept_bytes(training: Training) -> float:
    model = training.architecture
    logits = 4 * training.tokens * training.head_part * model.vocabulary / training.tensor_parallel
    layers = activation_bytes(training, scores=training.recompute == "none")
    if training.recompute != "full":
        return layers + logits
    stage = model.layers / training.pipeline_parallel
    in_flight = min(training.microbatches, training.pipeline_parallel)
    tokens = training.tokens / training.sequence_split
    inputs = stage * in_flight * tokens * model.hidden_size * training.vector_bytes
    return inputs + layers / (stage * in_flight) + logits  # the layer at work is whole
