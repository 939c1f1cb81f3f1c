"""The memory that a training needs on each worker: whether it fits, and whether activations must be recomputed.

Published tables often do not say whether they were. The rule (`needed_recompute`) gives the column "Activation
Checkpointing" of all published MPT rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..instances import GIB, InstanceType
from .architectures import Architecture
from .training_settings import DTYPE_BYTES, Attention, Recompute, Training, ZeroStage

ACTIVATION_BYTES = 18
"""Bytes that a layer keeps for each token and element of the hidden size, in 16 bits, without attention scores and the
feed-forward network (Korthikanti et al. 2022, "Reducing activation recomputation", equation 2: 34 in all, of which 16
are of a feed-forward network four times as wide)."""
FFN_BYTES = 2
"""The same for each element of the feed-forward size: the output of each projection, and the input of the last."""
SCORE_BYTES = 5
"""Bytes that eager attention keeps for each score (the same equation)."""
STATE_BYTES = 16
"""Weight, gradient and fp32 optimizer state of one parameter in 16-bit training."""
USABLE = 0.92
"""Part of the memory that tensors can use; the rest goes to buffers and fragments. Assumption."""
TIGHT = 0.9
"""From this part of the usable memory on, a job may not fit. The model leaves some needs out: of the memory that
published runs reported, it has 45 to 89 % (docs/explanation/figures.md)."""


class MemoryNeed(NamedTuple):
    """The bytes that a job needs on one worker, and those that it can use there."""

    needed_bytes: float
    usable_bytes: float

    @property
    def fits(self) -> bool:
        """Whether the job fits the memory."""
        return self.needed_bytes <= self.usable_bytes

    @property
    def part(self) -> float:
        """What is needed of what can be used."""
        return self.needed_bytes / self.usable_bytes

    @property
    def is_tight(self) -> bool:
        """Whether the job fits with so little to spare that it may not; see `TIGHT`. By the percentage as shown."""
        return self.fits and round(self.part, 2) >= TIGHT


def usable_bytes(instance: InstanceType) -> float:
    """Bytes of one worker's memory that tensors can use."""
    return instance.core_memory_gib * GIB * USABLE


def activation_bytes(training: Training, *, scores: bool = True) -> float:
    """Bytes of activations of one worker's microbatches in flight, without recomputation.

    ``scores``: whether the scores of eager attention are kept, too.
    """
    model, tp = training.architecture, training.tensor_parallel
    per_token = ACTIVATION_BYTES * model.hidden_size
    per_token += FFN_BYTES * (model.up_projections + 1) * model.ffn_hidden_size
    if scores and training.attention == "eager":
        per_token += SCORE_BYTES * model.attention_heads * training.sequence_length
    stage = model.layers / training.pipeline_parallel
    in_flight = min(training.microbatches, training.pipeline_parallel)
    return per_token * training.tokens * stage * in_flight / tp * training.vector_bytes / 2


def state_bytes(training: Training) -> float:
    """Bytes of one worker's weights, gradients and optimizer state; frozen weights have no gradients and state."""
    shared = training.data_parallel if training.zero == "full" else 1
    frozen = 0.0 if training.lora is None else _frozen_bytes(training)
    return (STATE_BYTES * training.worker_trained + frozen) / shared


def _frozen_bytes(training: Training) -> float:
    return training.worker_parameters * DTYPE_BYTES[training.storage_dtype]


def crowding(training: Training, instance: InstanceType) -> float:
    """How full the state makes the memory with ZeRO-3 (FSDP): 0 if it takes half of the memory or less, 1 if all.

    The rest must hold gathered layers and activations in turn, so the allocator must free memory, wait and retry.
    """
    if training.zero != "full":
        return 0.0
    return min(1.0, max(0.0, 2 * state_bytes(training) / (instance.core_memory_gib * GIB) - 1))


def needed_recompute(training: Training, instance: InstanceType) -> Recompute:
    """``none`` if all activations fit in the memory beside the state, else ``full``."""
    return "none" if memory_need(replace(training, recompute="none"), instance).fits else "full"


def memory_need(training: Training, instance: InstanceType) -> MemoryNeed:
    """The most memory that one worker needs: state, activations kept for the backward pass, and logits.

    By this rule all published rows fit, as they must. A mean pass of less than one sequence (if the batch does not
    divide) counts as one, because a real pass has at least one.
    """
    if training.microbatch < 1:
        batch = training.data_parallel * training.microbatches
        training = replace(training, microbatch=1.0, global_batch=batch)
    needed = _split_state_bytes(training, instance) + _kept_bytes(training)
    return MemoryNeed(needed, usable_bytes(instance))


def usual_recompute(tensor_parallel: int, attention: Attention, instance: InstanceType) -> Recompute:
    """What scripts recompute if the model fits: ``selective`` with tensor parallelism, the default of its libraries.

    On GPUs with flash attention ``none``: it keeps no scores, so recomputing them would save nothing.
    """
    saves = attention == "eager" or instance.is_neuron
    return "selective" if tensor_parallel > 1 and saves else "none"


def usual_attention(
    model: Architecture, matmul_dtype: str, instance: InstanceType
) -> tuple[Attention, str | None]:
    """The attention that published scripts of such a model use if their row does not say, and a note (or None)."""
    if instance.is_neuron and model.flash_on_neuron:
        return "flash", "Llama on trn1 is taken to use the flash attention kernel"
    if not instance.is_neuron and model.is_causal and DTYPE_BYTES[matmul_dtype] <= 2:
        return "flash", "language models in 16 or 8 bits on GPUs are taken to use flash attention"
    return "eager", None


def attention_today(model: Architecture, matmul_dtype: str, instance: InstanceType) -> Attention:
    """The attention that today's scripts use if nothing is stated: on GPUs torch's `scaled_dot_product_attention`, even
    in fp32, and for encoders, although all published tables of encoders are older and eager.
    """
    return usual_attention(model, matmul_dtype, instance)[0] if instance.is_neuron else "flash"


def usual_gradient_bytes(dtype: str, zero: ZeroStage, instance: InstanceType) -> int:
    """Bytes a parameter in the reduction of gradients if nothing is stated: those of the weights' ``dtype``.

    With ZeRO-1 on NeuronCores 4: NxD's standard mixed precision (Neuron 2.20) accumulates gradients in fp32.
    """
    return 4 if instance.is_neuron and zero == "optimizer" else DTYPE_BYTES[dtype]


def scores_fit(training: Training, instance: InstanceType) -> bool:
    """Whether the scores of one layer of eager attention take at most half of the memory."""
    heads = training.architecture.attention_heads / training.tensor_parallel
    scores = SCORE_BYTES * training.microbatch * heads * training.sequence_length**2
    return scores / GIB <= instance.core_memory_gib / 2


def _split_state_bytes(training: Training, instance: InstanceType) -> float:
    """Bytes of weights, gradients, fp32 moments, and fp32 copies of 16-bit weights, sharded as ZeRO says.

    On trn1 stochastic rounding makes the fp32 copies unnecessary, except with ZeRO, whose libraries keep them:
    otherwise AWS's published GPT-3 6.7B would not have fitted.
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
    return inputs + layers / (stage * in_flight) + logits  # one layer at a time is recomputed, and held whole
