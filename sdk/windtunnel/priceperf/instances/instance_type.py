"""What an instance type has, and what follows from it for one of its cores.

Peaks are the vendor's, in multiply-and-add counted as two FLOPs. What a job reaches of them is the
business of the calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from ..errors import InvalidInput

GIGA = 1e9
TERA = 1e12
BITS_PER_BYTE = 8
GIB = 2**30


class Figure(NamedTuple):
    """One number as published. ``date``: when it was first offered (ISO)."""

    value: float
    unit: str
    source: str
    date: str


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One chip. All figures are of the whole chip."""

    name: str
    is_neuron: bool
    """Whether it has NeuronCores: scripts reach it through XLA, and graphs are compiled ahead."""
    core_name: str
    """What one worker runs on, for people."""
    cores: Figure
    """Physical cores."""
    logical_core_config: int
    """How many physical cores make the one that a worker runs on: AWS's LNC. 1: each is its own."""
    memory: Figure
    memory_bandwidth: Figure
    peaks: Mapping[str, Figure]
    """By dtype."""
    calibration: str | None
    """Which calibration models its steps; None: none does."""
    from_specification: bool = False
    """Nothing published was fitted: the parts of peaks that another accelerator reaches are taken for it."""

    @cached_property
    def workers(self) -> int:
        """Cores that run a worker each."""
        return int(self.cores.value) // self.logical_core_config


@dataclass(frozen=True, eq=False)
class InstanceType:
    """One SageMaker instance type."""

    name: str
    accelerator: Accelerator
    accelerators: Figure
    vcpus: Figure
    host_memory: Figure
    accelerator_link: Figure | None
    """Links of one accelerator to the others, both directions together; None: it has only one."""
    network: Figure
    has_efa: bool
    """Whether its network is AWS's Elastic Fabric Adapter."""
    sagemaker: frozenset[str]
    """What SageMaker offers it for: training, endpoint, transform, cluster (HyperPod)."""

    @cached_property
    def is_neuron(self) -> bool:
        """Whether it has NeuronCores. Only these are rehearsed."""
        return self.accelerator.is_neuron

    @property
    def trains_alone(self) -> bool:
        """Whether several cannot train one model: NeuronCores of two instances meet over EFA only ("cannot be used
        for running multi-node jobs", AWS Neuron documentation on trn1.2xlarge and its like).
        """
        return self.is_neuron and not self.has_efa

    @cached_property
    def calibration(self) -> str | None:
        """Which calibration models its steps; None: none does."""
        return self.accelerator.calibration

    @property
    def from_specification(self) -> bool:
        """Whether its calibration is another accelerator's; see `Accelerator.from_specification`."""
        return self.accelerator.from_specification

    @cached_property
    def core_count(self) -> int:
        """Workers of one instance: a GPU each, or a (logical) NeuronCore."""
        return int(self.accelerators.value) * self.accelerator.workers

    @property
    def core_name(self) -> str:
        """What one worker runs on, for people."""
        return self.accelerator.core_name

    @property
    def host_memory_bytes(self) -> int:
        """Memory of the host."""
        return int(self.host_memory.value * GIB)

    def core_peak_flops(self, dtype: str) -> float:
        """Peak of one core in FLOP/s for matrix multiplications in ``dtype``.

        Raises:
            InvalidInput: the accelerator has no peak for that dtype.
        """
        peaks = self.accelerator.peaks
        if dtype not in peaks:
            raise InvalidInput(f"{self.name} has no peak for dtype {dtype!r}; it has: {', '.join(peaks)}")
        return self._share(peaks[dtype].value) * TERA

    @cached_property
    def core_memory_bandwidth(self) -> float:
        """Bytes per second between one core and its memory."""
        return self._share(self.accelerator.memory_bandwidth.value) * GIGA

    @cached_property
    def core_memory_gib(self) -> float:
        """Accelerator memory of one core, GiB."""
        return self._share(self.accelerator.memory.value)

    @cached_property
    def core_link_bandwidth(self) -> float:
        """Bytes per second between one core and its peers in the instance.

        Cores of a single accelerator meet in its memory, so there its bandwidth counts.
        """
        if self.accelerator_link is None:
            return self.core_memory_bandwidth
        return self._share(self.accelerator_link.value) * GIGA

    @cached_property
    def network_bandwidth(self) -> float:
        """Bytes per second of the whole instance to other instances."""
        return self.network.value * GIGA / BITS_PER_BYTE

    def with_network(self, gbps: float | None) -> InstanceType:
        """The same instance on another network of so many Gbps; None: its own."""
        if gbps is None:
            return self
        return replace(self, network=Figure(gbps, "Gbps", "given", self.network.date))

    def same_chips_as(self, other: InstanceType) -> bool:
        """Whether it differs at most in how its accelerators are connected."""
        return self.accelerator is other.accelerator and self.core_count == other.core_count

    def _share(self, of_accelerator: float) -> float:
        """One core's part of what an accelerator has."""
        return of_accelerator / self.accelerator.workers
