"""The time of each engine of an accelerator: for matrix products, for element-wise work, for memory.

A worker (a NeuronCore-v2, an A100) has a matrix engine with a peak for each dtype, and
engines for element-wise work (vector and scalar engines; CUDA cores). Element-wise work is
bound by the bytes that it moves: on the A100 by HBM; on a NeuronCore by HBM and, for data that
stays on chip, by 128 lanes at 1.12 GHz (287 GB/s of bf16 elements against 410 GB/s of HBM).
Both limits are expressed as a part of the HBM bandwidth, so one constant covers both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import InvalidInput
from ..instances import InstanceType

HALF_SIZE = 128
"""If one dimension has this size, a product reaches half the speed of a large one. The matrix engine of a
NeuronCore is 128 x 128 (NKI architecture guide); cuBLAS's usual tile on an A100 has a side of 128."""

FP32_REACHED = 0.78
"""Part of a GPU's fp32 peak that large products reach at least: the power limit that slows the matrix engine of an
H100 does not matter in fp32. Fitted on the A100; with it plain scripts in fp32 on an H100 are off by 4 %
(`measured_scripts`)."""

CONVOLVED = 0.0125
"""Part of a NeuronCore's bf16 peak that the convolutions of a training step reach, in any precision: 1.2 TFLOP/s
on trn1. It comes from the one residual network with a published step in which the host waited for the device; another
source's network for CIFAR-10 agrees (calibration/published_other_models.csv). Other convolutions may be as fast as
products: their intervals include that."""

_SMALLEST_HEAD = 16

HIDDEN_PASSES = 32
"""How often an element of the hidden size is read or written in a layer, forward and backward, outside of
products: two norms (16), two residuals and their gradients (6), biases or dropout and the copies
around products (10). Counted, not fitted."""
FFN_PASSES = 12
"""The same for an element of the feed-forward size (each of both, if gated): bias, activation, its
derivative, copies around products. Counted, not fitted."""
HEAD_PASSES = 8
"""The same for a logit: softmax, loss and their gradient. Counted, not fitted."""

PARTITIONS = 128
"""Partitions of a NeuronCore's on-chip memory: rows of attention scores are padded to a multiple of this number."""

HOST_S = 0.005
"""Seconds that the host (loader, tracing) adds to each graph of a microbatch and that nothing hides. Assumption. Plain
scripts on an H100 took 3 to 7 ms longer than their kernels, in steps whose kernels took longer than the host
(tests/benchmarks/gpu_training.py)."""

PIPELINE_GRAPHS = 6
"""Graphs of a microbatch in a pipeline stage on NeuronCores: receive, compute and send, each forward and backward
(neuronx-distributed's 1F1B schedule). Without a pipeline, forward and backward are one graph."""

LAUNCH_S_PER_LAYER = 0.001
"""Seconds in which tuned software launches the kernels of a layer, forward and backward: the shortest that a layer can
take. Assumption. `plain_script` has the figures of plain scripts."""


@dataclass(frozen=True)
class Constants:
    """The constants of the model for one kind of accelerator. `fitting` says which are fitted, and to which rows.

    Args:
        tensor: part of the matrix engine's peak that large products reach.
        vector: part of the HBM bandwidth that element-wise work reaches.
        memory: part of the HBM bandwidth that weights, gradients and optimizer state reach.
        eager_passes: times an attention score is read or written in eager attention, forward and backward.
        flash: part of the matrix engine's peak that a flash attention kernel reaches.
        link: part of the links' bandwidth inside an instance that collectives reach.
        network: part of the network's bandwidth that collectives reach.
        hop_s: latency of each step of a ring, seconds, independent of the message size.
        overlap: part of the shorter of product time and memory time that runs at the same time as the longer.
        hidden_collectives: part of a microbatch's time that can hide collectives of gradients and gathered weights.
        straggling: part by which a step is longer for each doubling of the instances.
        pipeline: part by which a microbatch is longer than its own work in a pipeline of many stages: separate graphs
            for forward and backward, waits between unequal stages.
        recomputed: part of a forward pass that full recomputation costs. Below 1, because nothing after the last
            kept activation is recomputed, and forward products run better than backward ones.
        crowding: part by which arithmetic is longer when state fills the memory (`memory_need.crowding`).
    """

    tensor: float
    vector: float
    memory: float
    eager_passes: float
    flash: float
    link: float
    network: float
    hop_s: float
    overlap: float
    hidden_collectives: float
    straggling: float
    pipeline: float = 0.0
    recomputed: float = 1.0
    crowding: float = 0.0

    def __post_init__(self) -> None:
        """Check that each constant is in its range: nothing runs above its peak."""
        for name in ("tensor", "vector", "memory", "flash", "link", "network"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidInput(f"{name} must be above 0 and at most 1, not {getattr(self, name)}")
        for name in ("overlap", "hidden_collectives", "straggling", "pipeline", "recomputed", "crowding"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} must lie between 0 and 1, not {getattr(self, name)}")
        for name in ("eager_passes", "hop_s"):
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"{name} must be 0 or more, not {getattr(self, name)}")


class Product(NamedTuple):
    """``times`` products of (rows x inner) by (inner x columns).

    ``batched``: a batch of products that all have other operands, as in attention; otherwise one operand is a weight.
    A ``convolution`` is batched if its features are in groups.
    """

    rows: float
    inner: float
    columns: float
    times: float
    batched: bool = False
    convolution: bool = False

    @property
    def flops(self) -> float:
        """FLOPs of all ``times`` products; a multiply-and-add counts as two."""
        return 2 * self.rows * self.inner * self.columns * self.times

    @property
    def is_of_scores(self) -> bool:
        """Whether the product computes attention scores or multiplies by them. In older counters grouped convolutions
        are batched products too; most of them have a small side, which excludes them.
        """
        sides = (self.rows, self.inner, self.columns)
        return self.batched and not self.convolution and min(sides) >= _SMALLEST_HEAD

    def slowdown(self, half_size: float = HALF_SIZE) -> float:
        """How many times longer each FLOP takes than in a large product.

        Each dimension uses a part size / (size + half_size) of the engine: filling and draining
        the array (or the last wave of tiles) costs the same for any length of the dimension.
        """
        return (1 + half_size / self.rows) * (1 + half_size / self.inner) * (1 + half_size / self.columns)


def products_s(
    products: Iterable[Product], instance: InstanceType, dtype: str, constants: Constants
) -> float:
    """Seconds one core's matrix engine takes for these products."""
    items = tuple(products)
    if instance.is_neuron:
        return _on_neuron_s(items, instance, dtype, constants)
    if dtype == "fp32":
        return _on_gpu_s(items, instance, dtype, max(constants.tensor, FP32_REACHED))
    # GPUs compute grouped convolutions without their matrix engine, so at the fp32 peak.
    grouped = [item for item in items if item.convolution and item.batched]
    others = [item for item in items if not (item.convolution and item.batched)]
    seconds = _on_gpu_s(others, instance, dtype, constants.tensor)
    if dtype == "tf32":
        # It is allowed, not demanded. An A10G, whose peak is the same in both, fills its matrix engine less well.
        seconds = min(seconds, products_s(others, instance, "fp32", constants))
    return seconds + products_s(grouped, instance, "fp32", constants)


def _on_neuron_s(
    products: Iterable[Product], instance: InstanceType, dtype: str, constants: Constants
) -> float:
    half_size, peak = half_size_of(instance, dtype), instance.core_peak_flops(dtype) * constants.tensor
    convolved = instance.core_peak_flops("bf16") * CONVOLVED
    return math.fsum(
        item.flops * max(item.slowdown(half_size) / peak, 1 / convolved if item.convolution else 0.0)
        for item in products
    )


def _on_gpu_s(products: Iterable[Product], instance: InstanceType, dtype: str, reached: float) -> float:
    half_size, peak = half_size_of(instance, dtype), instance.core_peak_flops(dtype) * reached
    return math.fsum(item.flops * item.slowdown(half_size) for item in products) / peak


@dataclass(frozen=True)
class Scores:
    """Number of attention scores of one step: unpadded, and with rows padded to `PARTITIONS`."""

    elements: float = 0.0
    padded: float = 0.0

    def on(self, instance: InstanceType) -> float:
        """Scores that the instance's cores process: NeuronCores the padded ones."""
        return self.padded if instance.is_neuron else self.elements

    def __mul__(self, factor: float) -> Scores:
        """The scores of ``factor`` times as many samples."""
        return Scores(self.elements * factor, self.padded * factor)

    @classmethod
    def of(cls, products: Iterable[Product], products_of_attention: int) -> Scores:
        """Count the scores from a step's products. Each product of scores has the scores' two sides and the head size.

        Args:
            products: all products of the step.
            products_of_attention: products for each score: 2 forward (scores, scores x values), 6 with backward.
        """
        found = [cls._in(item) for item in products if item.is_of_scores]
        return cls(sum(item.elements for item in found), sum(item.padded for item in found)) * (
            1 / products_of_attention
        )

    @classmethod
    def _in(cls, product: Product) -> Scores:
        _, columns, rows = sorted((product.rows, product.inner, product.columns))
        padded = math.ceil(rows / PARTITIONS) * PARTITIONS
        return cls(rows * columns * product.times, padded * columns * product.times)


def half_size_of(instance: InstanceType, dtype: str) -> float:
    """`HALF_SIZE`; for fp8 and fp32 multiplied by the ratio of their peak to that of bf16.

    Filling the engine costs more in fp8, which is faster, and less in fp32, which does not use the matrix engine. TF32
    fills it as 16-bit types do.
    """
    if dtype not in ("fp8", "fp32"):
        return HALF_SIZE
    return HALF_SIZE * instance.core_peak_flops(dtype) / instance.core_peak_flops("bf16")


def bytes_s(moved: float, instance: InstanceType, efficiency: float) -> float:
    """Seconds in which one core moves these bytes. ``efficiency``: the reached part of the bandwidth."""
    return moved / (instance.core_memory_bandwidth * efficiency)
