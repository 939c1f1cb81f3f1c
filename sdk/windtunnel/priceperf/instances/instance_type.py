"""The hardware figures of an instance type, and those of one of its cores, derived from them.

Peaks are the vendor's; a multiply-and-add counts as two FLOPs. The calibration says which part of a
peak a job reaches.
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
    """One published number. ``date``: the day on which the hardware was first offered (ISO)."""

    value: float
    unit: str
    source: str
    date: str


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One chip. All figures are of the whole chip."""

    name: str
    is_neuron: bool
    """Whether the chip has NeuronCores: scripts use it through XLA, and graphs are compiled ahead of time."""
    core_name: str
    """The name of what one worker runs on, as shown to users."""
    cores: Figure
    """Physical cores."""
    logical_core_config: int
    """Physical cores in one logical core, on which one worker runs (AWS's LNC). 1: each is a logical core."""
    memory: Figure
    memory_bandwidth: Figure
    peaks: Mapping[str, Figure]
    """Peak of matrix multiplications, by dtype."""
    calibration: str | None
    """Key of the calibration that models its steps; None: there is none."""
    from_specification: bool = False
    """No published row is of this chip: it is assumed to reach the same part of its peaks as another accelerator."""

    @cached_property
    def workers(self) -> int:
        """Workers of one chip: one for each logical core."""
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
    """Bandwidth from one accelerator to the others, both directions together; None: the instance has only one."""
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
        """Whether several such instances cannot train one model: NeuronCores of two instances communicate over EFA
        only ("cannot be used for running multi-node jobs", AWS Neuron documentation on types like trn1.2xlarge).
        """
        return self.is_neuron and not self.has_efa

    @cached_property
    def calibration(self) -> str | None:
        """Key of the calibration that models its steps; None: there is none."""
        return self.accelerator.calibration

    @property
    def from_specification(self) -> bool:
        """Whether its calibration was fitted to another accelerator; see `Accelerator.from_specification`."""
        return self.accelerator.from_specification

    @cached_property
    def core_count(self) -> int:
        """Workers of one instance: one for each GPU or (logical) NeuronCore."""
        return int(self.accelerators.value) * self.accelerator.workers

    @property
    def core_name(self) -> str:
        """The name of what one worker runs on, as shown to users."""
        return self.accelerator.core_name

    @property
    def host_memory_bytes(self) -> int:
        """Memory of the host, bytes."""
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

        If the instance has one accelerator, its cores exchange data through its memory: the memory's bandwidth counts.
        """
        if self.accelerator_link is None:
            return self.core_memory_bandwidth
        return self._share(self.accelerator_link.value) * GIGA

    @cached_property
    def network_bandwidth(self) -> float:
        """Bytes per second of the whole instance to other instances."""
        return self.network.value * GIGA / BITS_PER_BYTE

    def with_network(self, gbps: float | None) -> InstanceType:
        """The same instance with a network of ``gbps``; None: with its own."""
        if gbps is None:
            return self
        return replace(self, network=Figure(gbps, "Gbps", "given", self.network.date))

    def same_chips_as(self, other: InstanceType) -> bool:
        """Whether both have the same accelerators, so that only their connections may differ."""
        return self.accelerator is other.accelerator and self.core_count == other.core_count

    def _share(self, of_accelerator: float) -> float:
        """One core's share of a figure of a whole accelerator."""
        return of_accelerator / self.accelerator.workers
