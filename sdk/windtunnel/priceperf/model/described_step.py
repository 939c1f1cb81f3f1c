"""The seconds of one optimizer step from its description, part by part.

step = (microbatches + pipeline stages - 1) x microbatch, longer by stragglers
       + optimizer + the part of the gradients' reduction that nothing hides

microbatch = the longer of products and memory + the part of the shorter that does not
             overlap + tensor-parallel collectives + transfers between stages + host

Tensor-parallel collectives are on the critical path: a layer waits for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ..errors import InvalidInput
from ..instances import InstanceType
from . import fused_attention, plain_script
from .collectives import Collective, Group, buckets, collective_seconds
from .engines import (
    FFN_PASSES,
    HEAD_PASSES,
    HIDDEN_PASSES,
    HOST_S,
    LAUNCH_S_PER_LAYER,
    PARTITIONS,
    PIPELINE_GRAPHS,
    Constants,
    Product,
    bytes_s,
    products_s,
)
from .host_tracing import BACKWARD_TRACE_S, FORWARD_TRACE_S, OPTIMIZER_TRACE_S
from .lora import LAUNCHES
from .memory_need import crowding
from .step_time import StepTime
from .training_settings import DTYPE_BYTES, Training

_WEIGHT_MOVES = 5
"""Moves of a weight in each microbatch: read forward and backward, its gradient written, then read and written
again, by accumulation or by the copies of its reduction."""
_GPU_WEIGHT_MOVES = 2
"""The same on a GPU, whose products read weights and write gradients while they compute: only accumulation is left."""
_FROZEN_READS = 2
"""Reads of a frozen weight: forward and backward. On a GPU its products read it, and cannot be faster than that."""
_FORWARD, _BACKWARD = 1, 2  # products of the same size
_BACKWARD_FROZEN = 1  # without the product that computes the weight's gradient


def training_step(
    training: Training, instance: InstanceType, constants: Constants, instance_count: int | None = None
) -> StepTime:
    """Model the step of a description on ``instance_count`` instances (default: as many as its workers need).

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
    return _step(training, instance, constants, count)


def forward_step(
    training: Training, step: StepTime, instance: InstanceType, constants: Constants, instance_count: int
) -> StepTime:
    """One forward pass over the batch of a `training_step`: a third of that step without recomputation and frozen
    weights, and half of its collectives.
    """
    if training.recompute != "none" or training.lora is not None:
        step = _step(training, instance, constants, instance_count, forward=True)
    part = 1 / (_FORWARD + _BACKWARD)
    return StepTime(
        compute_s=part * step.compute_s,
        memory_s=part * step.memory_s,
        overlapped_s=part * step.overlapped_s,
        host_s=max(_graphs_s(training) if instance.is_neuron else 0.0, part * step.host_s),
        gradients_s=0.0,
        tensor_parallel_s=step.tensor_parallel_s / 2,
        pipeline_transfer_s=step.pipeline_transfer_s / 2,
        weights_gathered_s=part * step.weights_gathered_s,
        bubble_s=part * step.bubble_s,
        straggling_s=part * step.straggling_s,
    )


def _step(
    training: Training, instance: InstanceType, constants: Constants, count: int, *, forward: bool = False
) -> StepTime:
    """Model the step. ``forward``: without recomputation, reduction of gradients, optimizer and frozen weights."""
    backward = _BACKWARD if forward else _backward(training)
    if forward:
        training = replace(training, recompute="none")
    products, memory, tensor_parallel, transfer = _microbatch(
        training.one_copy(), instance, constants, backward
    )
    overlapped = constants.overlap * min(products, memory)
    crowded = constants.crowding * crowding(training, instance)
    worked = (products + memory - overlapped) * (1 + crowded) + tensor_parallel + transfer
    host = host_s(training, instance, worked)
    worked += host
    gathered = _gathered_s(training, instance, constants, worked, backward)
    stages = training.pipeline_parallel
    uneven = constants.pipeline * (stages - 1) / stages * worked
    microbatch = worked + gathered + uneven
    n = training.microbatches
    bubble = (stages - 1) / training.interleaved * microbatch + n * uneven
    return StepTime(
        compute_s=n * products,
        memory_s=n * (memory + crowded * (products + memory - overlapped)),
        overlapped_s=n * overlapped,
        tensor_parallel_s=n * tensor_parallel,
        pipeline_transfer_s=n * transfer,
        bubble_s=bubble,
        host_s=n * host,
        weights_gathered_s=n * gathered,
        gradients_s=0.0 if forward else _reduced_s(training, instance, constants, worked),
        optimizer_s=0.0 if forward else _optimizer_s(training, instance, constants, n * host),
        straggling_s=(n * (worked + gathered) + bubble) * constants.straggling * math.log2(count),
    )


@lru_cache(maxsize=1024)
def _microbatch(
    alone: Training, instance: InstanceType, constants: Constants, backward: int
) -> tuple[float, float, float, float]:
    """Seconds of products, memory, tensor-parallel collectives and transfers. The number of copies does not matter, so
    ``alone`` is one copy's training, for which the result is cached. ``backward``: see `_backward`.
    """
    return (
        _products_s(alone, instance, constants, backward),
        _memory_s(alone, instance, constants),
        _tensor_parallel_s(alone, instance, constants),
        _transfer_s(alone, instance, constants),
    )


def host_s(training: Training, instance: InstanceType, worked_s: float) -> float:
    """Seconds of a microbatch in which the device waits for its host.

    The host runs ahead of the device. The device waits only if tracing the layers, or launching their kernels, takes
    longer than ``worked_s``, the time to run them.
    """
    layers = layers_launched(training)
    if instance.is_neuron:
        passes = 2 if training.recompute == "full" else 1
        per_layer = passes * FORWARD_TRACE_S + BACKWARD_TRACE_S + OPTIMIZER_TRACE_S / training.microbatches
        return max(_graphs_s(training), per_layer * layers - worked_s)
    if not training.plain:
        return max(0.0, LAUNCH_S_PER_LAYER * layers - worked_s)
    per_layer = plain_script.LAYER_LAUNCH_S[training.architecture.family, training.mixed_precision]
    return max(HOST_S, per_layer * layers - worked_s)


def _graphs_s(training: Training) -> float:
    return HOST_S * (PIPELINE_GRAPHS if training.pipeline_parallel > 1 else 1)


def layers_launched(training: Training) -> float:
    """Layers of a stage whose kernels are launched; adapters count as fractions of a layer (`lora.LAUNCHES`)."""
    layers = training.architecture.layers / training.pipeline_parallel
    if training.lora is None:
        return layers
    return layers * (1 + LAUNCHES * training.lora.adapters(training.architecture))


def training_flops(training: Training) -> float:
    """FLOPs of the products of one optimizer step over all workers, without recomputation, causal masks ignored."""
    model, length = training.architecture, training.sequence_length
    weights = model.layers * model.layer_weights + model.hidden_size * model.vocabulary * training.head_part
    attention = model.layers * 4 * length * model.hidden_size
    adapters = 0.0 if training.lora is None else training.lora.weights(model)
    per_token = (_FORWARD + _backward(training)) * 2 * weights
    per_token += (_FORWARD + _BACKWARD) * (2 * adapters + attention)
    return per_token * training.global_batch * length


def _backward(training: Training) -> int:
    """Products for each weight in the backward pass: 2, for a frozen weight 1."""
    return _BACKWARD if training.lora is None else _BACKWARD_FROZEN


def _products_s(training: Training, instance: InstanceType, constants: Constants, backward: int) -> float:
    """Seconds of a microbatch's products in the slowest stage: the last one, which also has the vocabulary head."""
    again = _again(training, constants)
    products = training_products(training, again, backward)
    seconds = products_s(products, instance, training.matmul_dtype, constants)
    if training.attention == "flash":
        passes = fused_attention.FORWARD * (1 + again.attention) + fused_attention.BACKWARD
        head_size = training.architecture.hidden_size / training.architecture.attention_heads
        seen = fused_attention.CAUSAL if training.architecture.is_causal else 1.0
        flops = passes * 2 * head_size * _scores(training, instance) * seen
        dtype = (
            "bf16" if training.matmul_dtype == "fp8" else training.matmul_dtype
        )  # attention stays in 16 bits
        seconds += fused_attention.seconds(flops, instance, dtype, constants, plain=training.plain)
    if training.lora is None or instance.is_neuron:
        return seconds
    read = training.worker_parameters * _FROZEN_READS * DTYPE_BYTES[training.storage_dtype]
    return max(seconds, bytes_s(read, instance, constants.memory))


class _Again(NamedTuple):
    """The parts of a forward pass that recomputation repeats: of a layer, and of its attention scores."""

    layer: float = 0.0
    attention: float = 0.0


def _again(training: Training, constants: Constants) -> _Again:
    if training.recompute == "none":
        return _Again()
    part = constants.recomputed
    return _Again(0.0, 1.0) if training.recompute == "selective" else _Again(part, part)


def training_products(
    training: Training,
    again: _Again = _Again(),  # noqa: B008
    backward: int | None = None,
) -> Iterator[Product]:
    """The products of one microbatch on one worker of the slowest stage, forward and backward.

    ``backward``: products for each weight in the backward pass; None: those of the training.
    """
    model, tokens, tp = training.architecture, training.tokens, training.tensor_parallel
    layers = model.layers / training.pipeline_parallel
    trained = layers * (_FORWARD * (1 + again.layer) + _BACKWARD)
    backward = backward or _backward(training)
    times = layers * (_FORWARD * (1 + again.layer) + backward)
    hidden, ffn = model.hidden_size, model.ffn_hidden_size / tp
    yield Product(tokens, hidden, (hidden + 2 * model.kv_hidden_size) / tp, times)  # query, key, value
    yield Product(tokens, hidden / tp, hidden, times)
    yield Product(tokens, hidden, ffn, times * model.up_projections)
    yield Product(tokens, ffn, hidden, times)
    if model.vocabulary and training.head_part:
        rows = tokens * training.head_part
        in_16_bits = 2 if training.matmul_dtype == "fp8" else 1  # with fp8 the head stays in 16 bits
        yield Product(rows, hidden, model.vocabulary / tp, in_16_bits * (_FORWARD + backward))
    if training.attention == "eager":
        length, head_size = training.sequence_length, hidden / model.attention_heads
        forward = _FORWARD * (1 + again.attention)
        heads = training.microbatch * _worker_heads(training)
        # Scores, and their product with the values.
        yield Product(length, head_size, length, 2 * layers * heads * (forward + _BACKWARD), batched=True)
    if training.lora is not None:
        for inner, columns, copies, _ in training.lora.matrices(model):
            yield Product(tokens, inner / tp, training.lora.rank, trained * copies)
            yield Product(tokens, training.lora.rank, columns / tp, trained * copies)


def _memory_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """Seconds in which a microbatch moves the bytes of its element-wise work, weights and gradients."""
    model, tokens, tp = training.architecture, training.tokens, training.tensor_parallel
    layers = model.layers / training.pipeline_parallel
    again = _again(training, constants)
    recomputed = 1 + again.layer / 3
    # Rows with full recomputation are predicted best without a split, even torchtitan's, which has one.
    split = 1 if training.recompute == "full" else training.sequence_split
    per_token = (
        HIDDEN_PASSES * model.hidden_size / split
        + FFN_PASSES * model.up_projections * model.ffn_hidden_size / tp
    )
    if training.lora is not None:
        per_token += training.lora.elements(model) / tp
    elements = layers * tokens * per_token * recomputed
    elements += HEAD_PASSES * tokens * training.head_part * model.vocabulary / tp
    autocast = training.plain and training.mixed_precision
    moved = elements * (plain_script.AUTOCAST_BYTES if autocast else training.vector_bytes)
    if training.attention == "eager":
        passes = constants.eager_passes * (1 + again.attention / 3)
        moved += _scores(training, instance) * passes * training.score_bytes
    moves = _WEIGHT_MOVES if instance.is_neuron else _GPU_WEIGHT_MOVES
    weights = training.worker_trained * moves
    if training.lora is not None and instance.is_neuron:
        weights += training.worker_parameters * _FROZEN_READS
    weights *= DTYPE_BYTES[training.storage_dtype]
    return bytes_s(moved, instance, constants.vector) + bytes_s(weights, instance, constants.memory)


def _scores(training: Training, instance: InstanceType) -> float:
    """Number of attention scores of one worker's microbatch in all its layers; NeuronCores pad the rows."""
    length = training.sequence_length
    rows = math.ceil(length / PARTITIONS) * PARTITIONS if instance.is_neuron else length
    layers = training.architecture.layers / training.pipeline_parallel
    return layers * training.microbatch * _worker_heads(training) * rows * length


def _worker_heads(training: Training) -> float:
    return max(1.0, training.architecture.attention_heads / training.tensor_parallel)


def _tensor_parallel_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """Seconds of a microbatch's four all-reduces a layer, two forward and two backward. (Sequence parallelism has pairs
    of reduce-scatter and all-gather instead, with as many bytes.)

    A recomputed layer repeats the forward ones, but the fitted rows of GPUs are predicted better without that.
    """
    tp = training.tensor_parallel
    each = 6 if training.recompute == "full" and instance.is_neuron else 4
    count = each * training.architecture.layers / training.pipeline_parallel
    element = DTYPE_BYTES[training.storage_dtype]
    payload = count * training.tokens * training.architecture.hidden_size * element
    group = Group(tp, min(tp, instance.core_count))
    return collective_seconds(Collective("all_reduce", count, payload), instance, constants, group)


def _transfer_s(training: Training, instance: InstanceType, constants: Constants) -> float:
    """Seconds to send activations to the next stage and their gradients back; stages are in different instances."""
    if training.pipeline_parallel == 1:
        return 0.0
    element = DTYPE_BYTES[training.storage_dtype]
    moved = 2 * training.tokens * training.architecture.hidden_size * element
    pipelines = max(1, instance.core_count // training.tensor_parallel)
    return moved * pipelines / (instance.network_bandwidth * constants.network)


def _gathered_s(
    training: Training, instance: InstanceType, constants: Constants, worked_s: float, backward: int
) -> float:
    """Exposed seconds of a microbatch's gathered weights and reduced gradients with ZeRO-3 (FSDP).

    The weights of each layer are gathered before forward and before backward, and gradients reduced after it (not with
    adapters): as many times as a weight has products.
    """
    if training.zero != "full":
        return 0.0
    count = training.architecture.layers / training.pipeline_parallel
    once = _data_parallel_s("all_gather", count, training.worker_parameters, training, instance, constants)
    return max(0.0, (_FORWARD + backward) * once - constants.hidden_collectives * worked_s)


def _reduced_s(training: Training, instance: InstanceType, constants: Constants, worked_s: float) -> float:
    """Exposed seconds of the reduction of a step's gradients."""
    if training.zero == "full":
        return 0.0
    trained = training.worker_trained
    count = buckets(trained * training.gradient_bytes)
    whole = _data_parallel_s("all_reduce", count, trained, training, instance, constants)
    return max(0.0, whole - constants.hidden_collectives * worked_s)


def _data_parallel_s(
    kind: str,
    count: float,
    weights: float,
    training: Training,
    instance: InstanceType,
    constants: Constants,
) -> float:
    """Seconds to send ``weights`` (or gradients) once through the copies of the model, in ``count`` collectives."""
    # Tensor-parallel workers are neighbours in an instance; the copies of one shard are spread over the instances.
    local = max(1, min(training.data_parallel, instance.core_count // training.tensor_parallel))
    group = Group(training.data_parallel, local, min(instance.core_count, training.tensor_parallel))
    payload = weights * training.gradient_bytes
    return collective_seconds(Collective(kind, count, payload), instance, constants, group)


def _optimizer_s(training: Training, instance: InstanceType, constants: Constants, waited_s: float) -> float:
    """Seconds of the optimizer. With ZeRO, the data-parallel workers of one instance shard it.

    Real sharding goes over all instances; it would save more of what is then below 1 % of a step. That is left
    out, so that twice the instances are never modelled as more than twice as fast. ``waited_s``: time in which a
    GPU waits for its host. The kernels of a plain script's optimizer run in that time.
    """
    local = min(training.data_parallel, instance.core_count // training.tensor_parallel)
    shared = 1 if training.zero == "none" else max(1, local)
    trained = training.worker_trained / shared
    if not training.plain or instance.is_neuron:
        return bytes_s(trained * training.optimizer_bytes, instance, constants.memory)
    moved = trained * plain_script.OPTIMIZER_BYTES[training.moments]
    return max(0.0, bytes_s(moved, instance, constants.memory) - max(0.0, waited_s - HOST_S))
