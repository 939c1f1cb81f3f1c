"""Instance types: what each one has, every number with its unit, source and date.

All figures are of one whole instance unless the name says otherwise. Peaks are
the vendor's, in multiply-and-add counted as two FLOPs; what a job reaches of
them is the business of `calibration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import InvalidInput, UnknownInstance

Family = Literal["trn1", "a100"]

GIGA = 1e9
TERA = 1e12
BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Figure:
    """One number as published. ``date``: when the instance type was first offered with it (ISO)."""

    value: float
    unit: str
    source: str
    date: str


@dataclass(frozen=True, eq=False)
class InstanceType:
    """One SageMaker instance type. ``cores``: workers it runs (NeuronCores, or GPUs)."""

    name: str
    family: Family
    accelerator: str
    accelerators: Figure
    cores: Figure
    vcpus: Figure
    host_memory: Figure
    accelerator_memory: Figure
    peaks: Mapping[str, Figure]
    memory_bandwidth: Figure
    accelerator_link: Figure | None
    """Links of one accelerator to the others, both directions together; None: it has only one."""
    network: Figure

    @property
    def core_count(self) -> int:
        """Workers of one instance."""
        return int(self.cores.value)

    @property
    def core_name(self) -> str:
        """What one worker runs on, for people."""
        return "NeuronCore" if self.family == "trn1" else "GPU"

    def core_peak_flops(self, dtype: str) -> float:
        """Peak of one core in FLOP/s for matrix multiplications in ``dtype``.

        Raises:
            InvalidInput: the accelerator has no peak for that dtype.
        """
        if dtype not in self.peaks:
            raise InvalidInput(
                f"{self.name} has no peak for dtype {dtype!r}; it has: {', '.join(self.peaks)}"
            )
        return self.peaks[dtype].value * TERA / self.core_count

    @property
    def core_memory_bandwidth(self) -> float:
        """Bytes per second between one core and its memory."""
        return self.memory_bandwidth.value * GIGA / self.core_count

    @property
    def core_memory_gib(self) -> float:
        """Accelerator memory of one core, GiB."""
        return self.accelerator_memory.value / self.core_count

    @property
    def core_link_bandwidth(self) -> float:
        """Bytes per second between one core and its peers in the instance.

        Cores of a single accelerator meet in its memory, so there its bandwidth counts.
        """
        if self.accelerator_link is None:
            return self.core_memory_bandwidth
        return self.accelerator_link.value * GIGA * self.accelerators.value / self.core_count

    @property
    def network_bandwidth(self) -> float:
        """Bytes per second of the whole instance to other instances."""
        return self.network.value * GIGA / BITS_PER_BYTE


_NEURON = "AWS Neuron documentation, about-neuron/arch/neuron-hardware (trainium.rst, trn1-arch.rst)"
_NEURON_2XL = f"{_NEURON}; network 'up to 12.5' in the launch post, 'up to 25' on the architecture page"
_NEURON_32XL = f"{_NEURON}; 190 TFLOPS a chip as AWS's own MFU figures take it (launch post: 3.4 PFLOPS)"
_A100 = "NVIDIA A100 datasheet (312/156/19.5 TFLOPS, 1555 GB/s, NVSwitch 600 GB/s per GPU); EFA 400 Gbps"
_A100_80 = "NVIDIA A100 80GB datasheet (2039 GB/s); EFA 400 Gbps"


def _instance(
    name: str,
    family: Family,
    accelerator: str,
    counts: tuple[int, int, int],
    memory_gib: tuple[int, int],
    tflops: tuple[float, float, float],
    bandwidth: tuple[float, float | None, float],
    source: str,
    date: str,
) -> InstanceType:
    def figure(value: float, unit: str) -> Figure:
        return Figure(float(value), unit, source, date)

    bf16, tf32, fp32 = tflops
    hbm, link, network = bandwidth
    return InstanceType(
        name=name,
        family=family,
        accelerator=accelerator,
        accelerators=figure(counts[0], "accelerators"),
        cores=figure(counts[1], "cores"),
        vcpus=figure(counts[2], "vCPUs"),
        host_memory=figure(memory_gib[0], "GiB"),
        accelerator_memory=figure(memory_gib[1], "GiB"),
        peaks={
            "bf16": figure(bf16, "TFLOPS"),
            "fp16": figure(bf16, "TFLOPS"),
            "tf32": figure(tf32, "TFLOPS"),
            "fp32": figure(fp32, "TFLOPS"),
        },
        memory_bandwidth=figure(hbm, "GB/s"),
        accelerator_link=None if link is None else figure(link, "GB/s"),
        network=figure(network, "Gbps"),
    )


_ALL = (
    _instance(
        "ml.trn1.2xlarge", "trn1", "Trainium1", (1, 2, 8), (32, 32), (190, 190, 47.5), (820, None, 12.5),
        _NEURON_2XL, "2022-10-10",
    ),
    _instance(
        "ml.trn1.32xlarge", "trn1", "Trainium1", (16, 32, 128), (512, 512), (3040, 3040, 760),
        (13120, 384, 800), _NEURON_32XL, "2022-10-10",
    ),
    _instance(
        "ml.trn1n.32xlarge", "trn1", "Trainium1", (16, 32, 128), (512, 512), (3040, 3040, 760),
        (13120, 768, 1600), _NEURON_32XL, "2023-04-01",
    ),
    _instance(
        "ml.p4d.24xlarge", "a100", "A100-SXM4-40GB", (8, 8, 96), (1152, 320), (2496, 1248, 156),
        (12440, 600, 400), _A100, "2020-11-01",
    ),
    _instance(
        "ml.p4de.24xlarge", "a100", "A100-SXM4-80GB", (8, 8, 96), (1152, 640), (2496, 1248, 156),
        (16312, 600, 400), _A100_80, "2022-05-01",
    ),
)  # fmt: skip

CATALOG: Mapping[str, InstanceType] = {entry.name: entry for entry in _ALL}
"""Every instance type the model knows, by SageMaker name (``ml.trn1.32xlarge``)."""


def instance_type(name: str) -> InstanceType:
    """The instance type of that name, with or without ``ml.``.

    Raises:
        UnknownInstance: not in the catalog; the message lists what is.
    """
    full = name if name.startswith("ml.") else f"ml.{name}"
    if full not in CATALOG:
        raise UnknownInstance(
            f"No figures for instance type {name!r}. Known: {', '.join(CATALOG)}. "
            "Choose one of these; other types cannot be modelled."
        )
    return CATALOG[full]
