"""The time of one training step from a rehearsal's counts, part by part.

step = the longer of compute and memory + the part of the shorter that does not overlap
       + exposed collectives (those that nothing hides) + the host's part (`host_tracing`)

The constants are those of `described_step`. Counts give the dimensions of each product, and the bytes that
element-wise work moves after fusion (docs/reference/counters.md has the rules). These rules fuse more than the
compilers behind the published rows do, above all around attention. So the counted bytes of attention scores
(`SCORE_FUSED_PASSES`) are replaced by those of eager attention in the published rows, and the other bytes are
multiplied by `VECTOR_PER_FUSED_BYTE`. Counters of earlier versions have neither dimensions nor fused bytes. For
them two ratios are used, counted from the published rows with eager attention: `PRODUCT_SLOWDOWN` and
`VECTOR_PER_PRODUCT_BYTE`. `Calibration.counts_errors` says how much less accurate counts are than a
description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import InvalidInput
from ..instances import InstanceType
from . import fused_attention, plain_script
from .collectives import Collective, Group, buckets, collective_seconds
from .engines import HALF_SIZE, HOST_S, Constants, Product, Scores, bytes_s, half_size_of, products_s
from .fused_attention import Fused
from .host_tracing import HOST_SPEED, HostWork
from .precision import Precision
from .step_time import StepTime

PRODUCT_SLOWDOWN = 1.5
"""Time of a step's products over that of large products with as many FLOPs: 1.4 to 1.7 in rows of eager attention."""
VECTOR_PER_PRODUCT_BYTE = 2.0
"""Bytes that element-wise work moves for each byte of the products' operands and results that grow with
the batch: 1.4 to 2.6 in the rows with eager attention."""
VECTOR_PER_FUSED_BYTE = 1.25
"""Bytes that element-wise work without attention scores moves for each byte of the fusion model: 1.0 to
1.4 in BERT, GPT-2, Llama and ViT, compared with `engines.HIDDEN_PASSES` and `engines.FFN_PASSES`."""
SCORE_FUSED_PASSES = 12.0
"""How often the fusion model reads or writes each attention score in a training step: 10 without dropout, 15 with."""
_FORWARD_PART = 1 / 3


@dataclass(frozen=True)
class StepWork:
    """What one worker does in one step: FLOPs by the dtype in the script, bytes moved, collectives.

    ``state_bytes``: the part of ``bytes_moved`` that does not grow with the batch: weights,
    gradients, optimizer state. ``products`` (by dtype) and ``fused_bytes`` (of element-wise work that grows
    with the batch) are empty and None in counters of earlier versions. ``scores``: of attention, ``score_bytes``
    each. ``fused``: the part of them for which a GPU has a fused kernel. ``convolved``: the part of the FLOPs in
    convolutions. ``backward``: whether the step has a backward pass.
    ``host``: None if not measured. ``repeated``, ``repeated_bytes``: the parts of the FLOPs and of the fused
    bytes that a Neuron instance computes twice, because the script reads values in the middle of steps.
    """

    samples: float
    flops: Mapping[str, float]
    bytes_moved: float
    collectives: tuple[Collective, ...] = ()
    state_bytes: float = 0.0
    products: Mapping[str, tuple[Product, ...]] = field(default_factory=dict)
    fused_bytes: float | None = None
    scores: Scores = field(default_factory=Scores)
    score_bytes: float = 4.0
    fused: Fused = Fused()  # noqa: RUF009 - it is a tuple
    convolved: float = 0.0
    backward: bool = True
    host: HostWork | None = None
    repeated: float = 0.0
    repeated_bytes: float = 0.0

    def __post_init__(self) -> None:
        """Check that the state's bytes are a part of all bytes."""
        if not 0 <= self.state_bytes <= self.bytes_moved:
            raise InvalidInput(
                f"state bytes must lie between 0 and the {self.bytes_moved} moved, not {self.state_bytes}"
            )

    def moving(self, state_bytes: float) -> StepWork:
        """The same work, with more bytes of weights, gradients or optimizer state moved."""
        return replace(
            self, bytes_moved=self.bytes_moved + state_bytes, state_bytes=self.state_bytes + state_bytes
        )

    def on(self, instance: InstanceType) -> StepWork:
        """The work on that instance. A GPU runs eagerly, so it does not repeat work when the script reads a value."""
        if instance.is_neuron or not self.repeated:
            return self
        once = 1 - self.repeated
        return replace(
            self._with_products(once),
            fused_bytes=None if self.fused_bytes is None else self.fused_bytes * (1 - self.repeated_bytes),
            repeated=0.0,
            repeated_bytes=0.0,
        )

    def as_products(self) -> StepWork:
        """The same work, with convolutions treated as any other product."""
        if not self.convolved:
            return self
        return replace(
            self,
            products={
                dtype: tuple(item._replace(convolution=False) for item in products)
                for dtype, products in self.products.items()
            },
        )

    def _with_products(self, times: float) -> StepWork:
        return replace(
            self,
            flops={dtype: count * times for dtype, count in self.flops.items()},
            products={
                dtype: tuple(item._replace(times=item.times * times) for item in products)
                for dtype, products in self.products.items()
            },
            scores=self.scores * times,
        )

    def scaled(self, samples: float) -> StepWork:
        """The work for ``samples`` times as many samples: FLOPs, bytes and products; collectives and host stay.

        The number of products grows, not their size. In a larger real batch the products are larger and run a little
        better than this says.
        """
        return replace(
            self._with_products(samples),
            samples=self.samples * samples,
            bytes_moved=self.bytes_moved * samples,
            state_bytes=self.state_bytes * samples,
            fused_bytes=None if self.fused_bytes is None else self.fused_bytes * samples,
        )


def step_time(
    work: StepWork,
    instance: InstanceType,
    precision: Precision,
    constants: Constants,
    instance_count: int = 1,
    host_slowness: float = HOST_SPEED.value,
) -> StepTime:
    """The modelled time of one step on ``instance_count`` instances with all their cores.

    ``host_slowness``: see `HOST_SPEED`. Eager PyTorch on a GPU traces nothing, but the same Python launches the
    kernels; in a small step this takes longer than the kernels.

    Raises:
        InvalidInput: no instance, negative work, or a dtype the instance has no peak for.
    """
    if instance_count < 1:
        raise InvalidInput(f"a job has at least 1 instance, not {instance_count}")
    work = work.on(instance)
    compute = _compute_s(work, instance, precision, constants)
    memory = bytes_s(_elementwise_bytes(work, instance, constants), instance, constants.vector)
    memory += bytes_s(work.state_bytes, instance, constants.memory)
    overlapped = constants.overlap * min(compute, memory)
    worked = compute + memory - overlapped
    group = Group(instance.core_count * instance_count, instance.core_count)
    collective = sum(
        collective_seconds(_in_buckets(item), instance, constants, group) for item in work.collectives
    )
    exposed = max(0.0, collective - constants.hidden_collectives * worked)
    host = HOST_S
    if work.host is not None and instance.is_neuron:
        host += work.host.not_hidden_s(worked + exposed, host_slowness)
    elif work.host is not None:
        launching = work.host.launch_s
        if launching is None:
            launching = plain_script.LAUNCH_PER_TRACE * work.host.trace_s
        host = max(host, launching * host_slowness - worked - exposed)
    return StepTime(
        compute_s=compute,
        memory_s=memory,
        overlapped_s=overlapped,
        host_s=host,
        gradients_s=exposed,
        hidden_collective_s=collective - exposed,
    )


def _elementwise_bytes(work: StepWork, instance: InstanceType, constants: Constants) -> float:
    if work.fused_bytes is None:
        return (work.bytes_moved - work.state_bytes) * VECTOR_PER_PRODUCT_BYTE
    part = work.score_bytes * (1.0 if work.backward else _FORWARD_PART)
    of_scores = min(work.fused_bytes, work.scores.elements * SCORE_FUSED_PASSES * part)
    written_out = 1.0 if instance.is_neuron else 1 - work.fused.part
    passed = written_out * work.scores.on(instance) * constants.eager_passes * part
    return (work.fused_bytes - of_scores) * VECTOR_PER_FUSED_BYTE + passed


def _compute_s(work: StepWork, instance: InstanceType, precision: Precision, constants: Constants) -> float:
    seconds = 0.0
    if work.products:
        for dtype, products in work.products.items():
            ran_as = precision.ran_as(dtype)
            if work.fused.part and not instance.is_neuron:
                flops, products = work.fused.taken_from(products, backward=work.backward)
                seconds += fused_attention.seconds(flops, instance, ran_as, constants, plain=True)
            seconds += products_s(products, instance, ran_as, constants)
        return seconds
    for dtype, count in work.flops.items():
        if count < 0:
            raise InvalidInput(f"FLOPs must be 0 or more, not {count} ({dtype})")
        ran_as = precision.ran_as(dtype)
        fill = (PRODUCT_SLOWDOWN - 1) * half_size_of(instance, ran_as) / HALF_SIZE
        seconds += count * (1 + fill) / (instance.core_peak_flops(ran_as) * constants.tensor)
    return seconds


def _in_buckets(item: Collective) -> Collective:
    """Count a large payload as several messages (`collectives.buckets`), although the rehearsal reduced it in one."""
    return Collective(item.kind, max(item.times, buckets(item.payload_bytes)), item.payload_bytes)
