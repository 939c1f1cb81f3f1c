"""From a description to the seconds of one optimizer step, part by part.

step = (microbatches + pipeline stages - 1) x microbatch, stretched by stragglers
       + optimizer + what of the reduction of gradients nothing hides

microbatch = the longer of products and memory, and the part of the shorter that does not
             overlap + tensor-parallel collectives + transfers between stages + host

Tensor-parallel collectives are on the critical path: a layer waits for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InvalidInput
from ..instances import InstanceType
from .collectives import Collective, Group, buckets, collective_seconds
from .engines import (
    FFN_PASSES,
    HEAD_PASSES,
    HIDDEN_PASSES,
    HOST_S,
    PARTITIONS,
    Constants,
    Product,
    bytes_s,
    products_s,
)
from .training_settings import DTYPE_BYTES, Training

_WEIGHT_MOVES = 5
"""Of a weight in each microbatch: read forward and backward, its gradient written, and read and written
again, by accumulation or by the copies of its reduction."""
_FORWARD, _BACKWARD = 1, 2  # products of the same size
_FLASH_FORWARD, _FLASH_BACKWARD = 2, 5  # products of a flash attention kernel; backward recomputes scores
_CAUSAL = 0.5  # a flash attention kernel skips the upper half of the scores


@dataclass(frozen=True)
class TrainingStep:
    """Seconds of one optimizer step on one worker; the parts add up to ``total_s``.

    ``overlapped_s``: the part of ``products_s`` + ``memory_s`` that runs at the same time.
    """

    products_s: float
    memory_s: float
    overlapped_s: float
    tensor_parallel_s: float
    pipeline_transfer_s: float
    bubble_s: float
    host_s: float
    weights_gathered_s: float
    gradients_s: float
    optimizer_s: float
    straggling_s: float

    @property
    def total_s(self) -> float:
        """From one step to the next."""
        return (
            self.products_s + self.memory_s - self.overlapped_s
            + self.tensor_parallel_s + self.pipeline_transfer_s + self.bubble_s + self.host_s
            + self.weights_gathered_s + self.gradients_s + self.optimizer_s + self.straggling_s
        )  # fmt: skip


def training_step(
    training: Training, instance: InstanceType, constants: Constants, instance_count: int | None = None
) -> TrainingStep:
    """The modelled step of a description on ``instance_count`` instances (default: as many as it needs).

    Raises:
        InvalidInput: more workers than the instances have cores.
    """
    needed = math.ceil(training.workers / instance.core_count)
    count = needed if instance_count is None else instance_count
    if count < needed:
        raise InvalidInput(
            f"{training.workers} workers need {needed} x {instance.name} "
            f"({instance.core_count} {instance.core_name}s each), not {count}"
        )
    products = _products_s(training, instance, constants)
    memory = _memory_s(training, instance, constants)
    overlapped = constants.overlap * min(products, memory)
    tensor_parallel = _tensor_parallel_s(training, instance, constants)
    transfer = _transfer_s(training, instance, constants)
    worked = products + memory - overlapped + tensor_parallel + transfer + HOST_S
    gathered, reduced = _data_parallel_s(training, instance, constants, worked)
    microbatch = worked + gathered
    n = training.microbatches
    bubble = (training.pipeline_parallel - 1) * microbatch
    return TrainingStep(
        products_s=n * products,
        memory_s=n * memory,
        overlapped_s=n * overlapped,
        tensor_parallel_s=n * tensor_parallel,
        pipeline_transfer_s=n * transfer,
        bubble_s=bubble,
        host_s=n * HOST_S,
        weights_gathered_s=n * gathered,
        gradients_s=reduced,
        optimizer_s=_optimizer_s(training, instance, constants),
        straggling_s=(n * microbatch + bubble) * constants.straggling * math.log2(count),
    )


def throughput(
    training: Training, instance: InstanceType, constants: Constants, instance_count: int | None = None
) -> float:
    """Sequences per second over all workers."""
    return training.global_batch / training_step(training, instance, constants, instance_count).total_s


def training_flops(training: Training) -> float:
    """FLOPs of the products of one optimizer step over all workers, nothing recomputed, nothing skipped."""
    model, length = training.architecture, training.sequence_length
    layers = model.layers * (2 * model.layer_weights + 4 * length * model.hidden_size)
    per_token = layers + 2 * model.hidden_size * model.vocabulary * training.head_part
    return (_FORWARD + _BACKWARD) * per_token * training.global_batch * length


def _products_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """The slowest stage: the last one, which also has the vocabulary head."""
    seconds = products_s(training_products(training), instance, training.matmul_dtype, constants)
    if training.attention == "flash":
        passes = _FLASH_FORWARD * (1 if training.recompute == "none" else 2) + _FLASH_BACKWARD
        head_size = training.architecture.hidden_size / training.architecture.attention_heads
        flops = passes * 2 * head_size * _scores(training, instance) * _CAUSAL
        seconds += flops / (instance.core_peak_flops(training.matmul_dtype) * constants.flash)
    return seconds


def training_products(training: Training) -> Iterator[Product]:
    """Products of one microbatch on one worker of the slowest stage, forward and backward."""
    model, tokens, tp = training.architecture, training.tokens, training.tensor_parallel
    layers = model.layers / training.pipeline_parallel
    times = layers * (_FORWARD * (2 if training.recompute == "full" else 1) + _BACKWARD)
    hidden, ffn = model.hidden_size, model.ffn_hidden_size / tp
    yield Product(tokens, hidden, (hidden + 2 * model.kv_hidden_size) / tp, times)  # query, key, value
    yield Product(tokens, hidden / tp, hidden, times)
    yield Product(tokens, hidden, ffn, times * model.up_projections)
    yield Product(tokens, ffn, hidden, times)
    if model.vocabulary and training.head_part:
        rows = tokens * training.head_part
        yield Product(rows, hidden, model.vocabulary / tp, _FORWARD + _BACKWARD)
    if training.attention == "eager":
        length, head_size = training.sequence_length, hidden / model.attention_heads
        forward = _FORWARD * (1 if training.recompute == "none" else 2)
        heads = training.microbatch * _worker_heads(training)
        # Scores, and their product with the values.
        yield Product(length, head_size, length, 2 * layers * heads * (forward + _BACKWARD), batched=True)


def _memory_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """Element-wise work, and the weights and gradients of each microbatch."""
    model, tokens, tp = training.architecture, training.tokens, training.tensor_parallel
    layers = model.layers / training.pipeline_parallel
    recomputed = 1 + (1 / 3 if training.recompute == "full" else 0)
    hidden = model.hidden_size / (tp if training.sequence_parallel else 1)
    per_token = HIDDEN_PASSES * hidden + FFN_PASSES * model.up_projections * model.ffn_hidden_size / tp
    elements = layers * tokens * per_token * recomputed
    elements += HEAD_PASSES * tokens * training.head_part * model.vocabulary / tp
    moved = elements * training.vector_bytes
    if training.attention == "eager":
        again = 1 + (0 if training.recompute == "none" else 1 / 3)
        moved += _scores(training, instance) * constants.eager_passes * again * training.score_bytes
    weights = training.worker_parameters * _WEIGHT_MOVES * DTYPE_BYTES[training.storage_dtype]
    return bytes_s(moved, instance, constants.vector) + bytes_s(weights, instance, constants.memory)


def _scores(training: Training, instance: InstanceType) -> float:
    """Attention scores of one worker's microbatch in all its layers."""
    length = training.sequence_length
    rows = math.ceil(length / PARTITIONS) * PARTITIONS if instance.is_neuron else length
    layers = training.architecture.layers / training.pipeline_parallel
    return layers * training.microbatch * _worker_heads(training) * rows * length


def _worker_heads(training: Training) -> float:
    return max(1.0, training.architecture.attention_heads / training.tensor_parallel)


def _tensor_parallel_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """Four all-reduces a layer (or as many halves, with sequence parallelism): two forward, two backward."""
    tp = training.tensor_parallel
    count = 4 * training.architecture.layers / training.pipeline_parallel
    element = DTYPE_BYTES[training.storage_dtype]
    payload = count * training.tokens * training.architecture.hidden_size * element
    group = Group(tp, min(tp, instance.core_count))
    return collective_seconds(Collective("all_reduce", count, payload), instance, constants, group)


def _transfer_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """Activations to the next stage, their gradient back; stages lie in different instances."""
    if training.pipeline_parallel == 1:
        return 0.0
    element = DTYPE_BYTES[training.storage_dtype]
    moved = 2 * training.tokens * training.architecture.hidden_size * element
    pipelines = max(1, instance.core_count // training.tensor_parallel)
    return moved * pipelines / (instance.network_bandwidth * constants.network)


def _data_parallel_s(
    training: Training, instance: InstanceType, constants: Constants, worked_s: float
) -> tuple[float, float]:
    """What nothing hides: gathered weights of each microbatch, reduced gradients of the step."""
    # Data-parallel copies of one shard are spread over the instances, tensor-parallel ones are neighbours.
    local = max(1, min(training.data_parallel, instance.core_count // training.tensor_parallel))
    group = Group(training.data_parallel, local, min(instance.core_count, training.tensor_parallel))
    payload = training.worker_parameters * training.gradient_bytes
    count = buckets(payload)
    hidden = constants.hidden_collectives * worked_s
    if training.zero == "full":
        # Gathered before forward and before backward, reduced after it: three passes a microbatch.
        once = collective_seconds(Collective("all_gather", count, payload), instance, constants, group)
        return max(0.0, 3 * once - hidden), 0.0
    whole = collective_seconds(Collective("all_reduce", count, payload), instance, constants, group)
    return 0.0, max(0.0, whole - hidden)


def _optimizer_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """With ZeRO shared by the data-parallel workers of one instance.

    Sharing over all instances saves a further part of what is then under 1 % of a step; it is
    left away, so that twice the instances are never modelled as more than twice as fast.
    """
    local = min(training.data_parallel, instance.core_count // training.tensor_parallel)
    shared = 1 if training.zero == "none" else max(1, local)
    return bytes_s(training.worker_parameters * training.optimizer_bytes / shared, instance, constants.memory)
