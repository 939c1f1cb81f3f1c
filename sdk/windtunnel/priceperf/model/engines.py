"""What each engine of an accelerator takes for its work: products, element-wise work, memory.

A worker (a NeuronCore-v2, an A100) has a matrix engine with a peak for each dtype, and
engines for element-wise work (vector and scalar engines; CUDA cores). Element-wise work is
bound by the bytes that it moves: on the A100 by HBM, on a NeuronCore by HBM and, for what
stays on chip, by 128 lanes at 1.12 GHz (287 GB/s of bf16 elements against 410 GB/s of HBM).
Both are expressed as a part of the HBM bandwidth, so one constant covers both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import InvalidInput
from ..instances import InstanceType

HALF_SIZE = 128
"""At this size of one dimension a product reaches half of what a large one does. The matrix engine of a
NeuronCore is 128 x 128 (NKI architecture guide); cuBLAS's usual tile on an A100 has a side of 128."""

FP32_REACHED = 0.78
"""Part of a GPU's fp32 peak that large products reach at least: it has no power limit, as its matrix engine has on an
H100. As fitted on the A100; with it plain scripts in fp32 on an H100 are off by 4 % (`measured_scripts`).
"""

CONVOLVED = 0.0125
"""Part of a NeuronCore's bf16 peak that the convolutions of a training step reach, in whichever precision: 1.2 TFLOP/s
on trn1. Of the one residual network whose step was published while the device was waited for; CIFAR-10's network of
another source agrees (calibration/published_other_models.csv). Others may be as fast as products are: their intervals
say so."""

_SMALLEST_HEAD = 16

HIDDEN_PASSES = 32
"""Times an element of the hidden size is read or written in a layer, forward and backward, outside
products: two norms (16), two residuals and their gradients (6), biases or dropout and the copies
around products (10). Counted, not fitted."""
FFN_PASSES = 12
"""The same for an element of the feed-forward size (each of both, if gated): bias, activation, its
derivative, copies around products. Counted, not fitted."""
HEAD_PASSES = 8
"""The same for a logit: softmax, loss and their gradient. Counted, not fitted."""

PARTITIONS = 128
"""A NeuronCore's memory has as many partitions: rows of attention scores are padded to a multiple of them."""

HOST_S = 0.005
"""What the host adds to each graph of a microbatch and cannot hide (loader, tracing). Assumption. Plain scripts on an
H100 took 3 to 7 ms longer than their kernels where these were the longer (tests/benchmarks/gpu_training.py)."""

PIPELINE_GRAPHS = 6
"""Graphs of a microbatch in a stage of a pipeline on NeuronCores: to receive, compute and send, forward and backward,
each run by itself (neuronx-distributed's 1F1B schedule). Without a pipeline forward and backward are one graph."""

LAUNCH_S_PER_LAYER = 0.001
"""Seconds that tuned software takes to launch the kernels of a layer, forward and backward. Assumption; a step cannot
be shorter. `plain_script` has what scripts take."""


@dataclass(frozen=True)
class Constants:
    """What one kind of accelerator reaches. `fitting` says which are fitted, and from which rows.

    Args:
        tensor: part of the matrix engine's peak that large products reach.
        vector: part of the HBM bandwidth that element-wise work reaches.
        memory: part of the HBM bandwidth that weights, gradients and optimizer state reach.
        eager_passes: times an attention score is read or written in eager attention, forward and backward.
        flash: part of the matrix engine's peak that a flash attention kernel reaches.
        link: part of the links' bandwidth inside an instance that collectives reach.
        network: part of the network's bandwidth that they reach.
        hop_s: seconds of each step of a ring, whatever its size.
        overlap: part of the shorter of product time and memory time that runs behind the longer.
        hidden_collectives: part of a microbatch behind which gradients and gathered weights can travel.
        straggling: how much longer a step takes for each doubling of the instances.
        pipeline: how much longer a microbatch takes in a pipeline of many stages than its own work: graphs for
            forward and backward apart, waits between unequal stages.
        recomputed: part of a forward pass that full recomputation costs. Under 1: what comes after the last
            activation that is kept is not computed again, and products forward run better than backward.
        crowding: how much longer arithmetic takes where state fills the memory (`memory_need.crowding`).
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
        """Nothing runs above its peak."""
        for name in ("tensor", "vector", "memory", "flash", "link", "network"):
            check_efficiency(getattr(self, name), name)
        for name in ("overlap", "hidden_collectives", "straggling", "pipeline", "recomputed", "crowding"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} must lie between 0 and 1, not {getattr(self, name)}")
        for name in ("eager_passes", "hop_s"):
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"{name} must be 0 or more, not {getattr(self, name)}")


class Product(NamedTuple):
    """``times`` products of (rows x inner) by (inner x columns).

    ``batched``: both operands change from one to the next, as in attention; otherwise one is a weight. Of a
    convolution: its features are in groups.
    """

    rows: float
    inner: float
    columns: float
    times: float
    batched: bool = False
    convolution: bool = False

    @property
    def flops(self) -> float:
        """A multiplication and an addition are two."""
        return 2 * self.rows * self.inner * self.columns * self.times

    @property
    def is_of_scores(self) -> bool:
        """Whether it makes attention scores or multiplies by them. Counters of before the groups of convolutions were
        told apart have these among the batched, most of them with small sides.
        """
        sides = (self.rows, self.inner, self.columns)
        return self.batched and not self.convolution and min(sides) >= _SMALLEST_HEAD

    def slowdown(self, half_size: float = HALF_SIZE) -> float:
        """How much longer each FLOP takes than in a large product: the curve of size.

        Each dimension fills the engine like size / (size + half_size): filling and draining
        the array (or the last wave of tiles) costs the same however long the dimension is.
        """
        return (1 + half_size / self.rows) * (1 + half_size / self.inner) * (1 + half_size / self.columns)


def products_s(
    products: Iterable[Product], instance: InstanceType, dtype: str, constants: Constants
) -> float:
    """Seconds one core's matrix engine takes for these products."""
    half_size = half_size_of(instance, dtype)
    reached = constants.tensor
    if dtype == "fp32" and not instance.is_neuron:
        reached = max(reached, FP32_REACHED)
    seconds = 0.0
    if not instance.is_neuron and dtype != "fp32":
        # GPUs compute grouped convolutions beside their matrix engine.
        products = tuple(products)
        if grouped := [item for item in products if item.convolution and item.batched]:
            seconds = products_s(grouped, instance, "fp32", constants)
            products = [item for item in products if not (item.convolution and item.batched)]
    peak = instance.core_peak_flops(dtype) * reached
    if instance.is_neuron:
        convolved = instance.core_peak_flops("bf16") * CONVOLVED
        return math.fsum(
            item.flops * max(item.slowdown(half_size) / peak, 1 / convolved if item.convolution else 0.0)
            for item in products
        )
    return seconds + math.fsum(item.flops * item.slowdown(half_size) for item in products) / peak


@dataclass(frozen=True)
class Scores:
    """Elements of the attention scores of one step: as they are, and with rows padded to `PARTITIONS`."""

    elements: float = 0.0
    padded: float = 0.0

    def on(self, instance: InstanceType) -> float:
        """Elements that an instance's cores go through."""
        return self.padded if instance.is_neuron else self.elements

    def __mul__(self, factor: float) -> Scores:
        """The scores of so many times the samples."""
        return Scores(self.elements * factor, self.padded * factor)

    @classmethod
    def of(cls, products: Iterable[Product], products_of_attention: int) -> Scores:
        """From the products of a step that are of scores: each has the two sides of the scores, and the size of a head.

        Args:
            products: of the step.
            products_of_attention: 2 forward (scores, and their product with the values), 6 with backward.
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
    """`HALF_SIZE`, but in proportion to the peak where filling weighs more (fp8) or less.

    fp32 weighs less: it runs beside the matrix engine. TF32 fills it as 16 bits do.
    """
    if dtype not in ("fp8", "fp32"):
        return HALF_SIZE
    return HALF_SIZE * instance.core_peak_flops(dtype) / instance.core_peak_flops("bf16")


def bytes_s(moved: float, instance: InstanceType, efficiency: float) -> float:
    """Seconds one core takes to move bytes. ``efficiency``: the reached part of the bandwidth, 0 < e <= 1.

    Raises:
        InvalidInput: efficiency out of range or negative bytes.
    """
    check_efficiency(efficiency)
    if moved < 0:
        raise InvalidInput(f"bytes must be 0 or more, not {moved}")
    return moved / (instance.core_memory_bandwidth * efficiency)


def check_efficiency(efficiency: float, name: str = "an efficiency") -> None:
    """Raise `InvalidInput` unless 0 < efficiency <= 1."""
    if not 0 < efficiency <= 1:
        raise InvalidInput(f"{name} must be above 0 and at most 1, not {efficiency}")
