"""One training step on one instance: its time, broken down.

step = compute + memory + what of the collectives nothing hides + the host's part

Compute and memory are added, not maximised: on the published rows the sum is
clearly nearer (`calibration` says how near), because the kernels that fill the
matrix unit and those that wait for memory follow each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .catalog import InstanceType
from .collectives import Collective, collective_seconds
from .compute import Precision, compute_seconds
from .errors import InvalidInput
from .memory import memory_seconds

HOST_S_PER_STEP = 0.005
"""Python's own time for one step (loader, tracing or launching), on any instance. Assumption."""


@dataclass(frozen=True)
class StepWork:
    """What one worker does in one step: FLOPs by dtype as written, bytes moved, collectives."""

    samples: float
    flops: Mapping[str, float]
    bytes_moved: float
    collectives: tuple[Collective, ...] = ()


@dataclass(frozen=True)
class Efficiency:
    """What a family of instances reaches of its peaks.

    ``overlap``: the part of compute and memory time behind which collectives can hide.
    """

    compute: float
    memory: float
    link: float
    overlap: float

    def __post_init__(self) -> None:
        """Refuse an overlap out of range; the others are checked where they are used."""
        if not 0 <= self.overlap <= 1:
            raise InvalidInput(f"an overlap must lie between 0 and 1, not {self.overlap}")


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step.

    ``collective_s`` is all of the collectives' time, ``exposed_collective_s`` the part that nothing hides.
    """

    compute_s: float
    memory_s: float
    collective_s: float
    exposed_collective_s: float
    host_s: float

    @property
    def total_s(self) -> float:
        """Seconds from one step to the next."""
        return self.compute_s + self.memory_s + self.exposed_collective_s + self.host_s

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
    efficiency: Efficiency,
    instance_count: int = 1,
) -> StepTime:
    """The modelled time of one step on ``instance_count`` instances with all their cores."""
    compute = compute_seconds(work.flops, instance, precision, efficiency.compute)
    memory = memory_seconds(work.bytes_moved, instance, efficiency.memory)
    collective = sum(
        collective_seconds(item, instance, efficiency.link, instance_count) for item in work.collectives
    )
    return StepTime(
        compute_s=compute,
        memory_s=memory,
        collective_s=collective,
        exposed_collective_s=max(0.0, collective - efficiency.overlap * (compute + memory)),
        host_s=HOST_S_PER_STEP,
    )
