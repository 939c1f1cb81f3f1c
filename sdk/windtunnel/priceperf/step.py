"""One training step from a rehearsal's counts: its time, broken down.

step = the longer of compute and memory, and the part of the shorter that does not overlap
       + what of the collectives nothing hides + the host's part

The same constants as `predict`, with less to go by: counts tell FLOPs, the bytes of products'
operands and results, and collectives, but no shapes. Two ratios stand for the shapes, both
counted (not fitted) from the published rows with eager attention, whose shapes are known:
`PRODUCT_SLOWDOWN` and `VECTOR_PER_PRODUCT_BYTE`. `Calibration.counts_errors` says what that costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .catalog import InstanceType
from .collectives import Collective, Group, buckets, collective_seconds
from .compute import Precision, compute_seconds
from .engines import HALF_SIZE, HOST_S, Constants, bytes_s, half_size_of
from .errors import InvalidInput

PRODUCT_SLOWDOWN = 1.5
"""What the sizes of a step's products cost over large ones: 1.4 to 1.7 in the rows with eager attention."""
VECTOR_PER_PRODUCT_BYTE = 2.0
"""Bytes that element-wise work moves for each byte of the products' operands and results that grow with
the batch: 1.4 to 2.6 in the rows with eager attention."""


@dataclass(frozen=True)
class StepWork:
    """What one worker does in one step: FLOPs by dtype as written, bytes moved, collectives.

    ``state_bytes``: the part of ``bytes_moved`` that does not grow with the batch: weights,
    gradients, optimizer state.
    """

    samples: float
    flops: Mapping[str, float]
    bytes_moved: float
    collectives: tuple[Collective, ...] = ()
    state_bytes: float = 0.0

    def __post_init__(self) -> None:
        """The state is a part of all bytes."""
        if not 0 <= self.state_bytes <= self.bytes_moved:
            raise InvalidInput(
                f"state bytes must lie between 0 and the {self.bytes_moved} moved, not {self.state_bytes}"
            )


@dataclass(frozen=True)
class StepTime:
    """Seconds of one optimizer step, counted or described.

    ``overlapped_s`` is the part of ``compute_s`` + ``memory_s`` that runs at the same time;
    ``collective_s`` is all of the collectives' time, ``exposed_collective_s`` the part that nothing hides.
    Of that, ``tensor_parallel_s``, ``pipeline_transfer_s`` and ``weights_gathered_s`` are told apart in a
    description; the rest is gradients. Counts have the optimizer in ``memory_s``, and neither a bubble nor
    stragglers.
    """

    compute_s: float
    memory_s: float
    overlapped_s: float
    collective_s: float
    exposed_collective_s: float
    host_s: float
    tensor_parallel_s: float = 0.0
    pipeline_transfer_s: float = 0.0
    weights_gathered_s: float = 0.0
    bubble_s: float = 0.0
    optimizer_s: float = 0.0
    straggling_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Seconds from one step to the next."""
        return (
            self.compute_s + self.memory_s - self.overlapped_s + self.exposed_collective_s
            + self.host_s + self.bubble_s + self.optimizer_s + self.straggling_s
        )  # fmt: skip

    @property
    def gradients_s(self) -> float:
        """What of the collectives is neither tensor-parallel, nor between stages, nor gathered weights."""
        named = self.tensor_parallel_s + self.pipeline_transfer_s + self.weights_gathered_s
        return max(0.0, self.exposed_collective_s - named)

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
        }

    @property
    def largest(self) -> str:
        """What takes most of the step: compute, memory, collectives or host."""
        parts = {
            "compute": self.compute_s,
            "memory": self.memory_s,
            "collectives": self.exposed_collective_s,
            "host": self.host_s,
        }
        return max(parts, key=lambda name: parts[name])


def step_time(
    work: StepWork,
    instance: InstanceType,
    precision: Precision,
    constants: Constants,
    instance_count: int = 1,
) -> StepTime:
    """The modelled time of one step on ``instance_count`` instances with all their cores.

    Raises:
        InvalidInput: no instance, negative work, or a dtype the instance has no peak for.
    """
    if instance_count < 1:
        raise InvalidInput(f"a job has at least 1 instance, not {instance_count}")
    compute = _compute_s(work, instance, precision, constants)
    elementwise = (work.bytes_moved - work.state_bytes) * VECTOR_PER_PRODUCT_BYTE
    memory = bytes_s(elementwise, instance, constants.vector)
    memory += bytes_s(work.state_bytes, instance, constants.memory)
    overlapped = constants.overlap * min(compute, memory)
    worked = compute + memory - overlapped
    group = Group(instance.core_count * instance_count, instance.core_count)
    collective = sum(
        collective_seconds(_in_buckets(item), instance, constants, group) for item in work.collectives
    )
    return StepTime(
        compute_s=compute,
        memory_s=memory,
        overlapped_s=overlapped,
        collective_s=collective,
        exposed_collective_s=max(0.0, collective - constants.hidden_collectives * worked),
        host_s=HOST_S,
    )


def _compute_s(work: StepWork, instance: InstanceType, precision: Precision, constants: Constants) -> float:
    seconds = 0.0
    for dtype, count in work.flops.items():
        ran_as = precision.ran_as(dtype)
        fill = (PRODUCT_SLOWDOWN - 1) * half_size_of(instance, ran_as) / HALF_SIZE
        seconds += compute_seconds({dtype: count * (1 + fill)}, instance, precision, constants.tensor)
    return seconds


def _in_buckets(item: Collective) -> Collective:
    """A large payload counts as several messages, also where the rehearsal reduced it in one piece."""
    return Collective(item.kind, max(item.count, buckets(item.payload_bytes)), item.payload_bytes)
