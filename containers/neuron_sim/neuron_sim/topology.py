"""The Trainium instances that are simulated: devices, cores and memory.

Figures: AWS Neuron documentation, "Trn1 architecture" (16 Trainium devices with
two NeuronCores-v2 and 32 GiB of HBM each in a trn1.32xlarge, a 4x4 torus).
"""

from __future__ import annotations

from dataclasses import dataclass

from neuron_sim.errors import TopologyError

DEVICE_KIND = "NC_v2"
"""What `xm.xla_device_kind()` answers on trn1."""

GIB = 1024**3


@dataclass(frozen=True)
class Instance:
    """One instance type. ``memory_per_device_bytes`` is HBM."""

    name: str
    devices: int
    cores_per_device: int
    memory_per_device_bytes: int
    vcpus: int

    @property
    def cores(self) -> int:
        """NeuronCores of the whole instance."""
        return self.devices * self.cores_per_device

    @property
    def memory_per_core_bytes(self) -> int:
        """HBM that one core can use."""
        return self.memory_per_device_bytes // self.cores_per_device


INSTANCES = {
    instance.name: instance
    for instance in (
        Instance("trn1.2xlarge", 1, 2, 32 * GIB, 8),
        Instance("trn1.32xlarge", 16, 2, 32 * GIB, 128),
        Instance("trn1n.32xlarge", 16, 2, 32 * GIB, 128),
    )
}


def instance(name: str) -> Instance:
    """The instance of this name, with or without SageMaker's ``ml.``.

    Raises:
        TopologyError: the name is not simulated; the message lists those that are.
    """
    try:
        return INSTANCES[name.removeprefix("ml.")]
    except KeyError:
        known = ", ".join(f"ml.{known}" for known in INSTANCES)
        raise TopologyError(
            f"instance type {name!r} is not simulated. Simulated are: {known}. "
            "Set instance_type= of the Estimator to one of them."
        ) from None


_BDFS = (
    "10:1c.0", "10:1d.0", "a0:1c.0", "a0:1d.0", "20:1b.0", "20:1c.0", "90:1b.0", "90:1c.0",
    "20:1d.0", "20:1e.0", "90:1d.0", "90:1e.0", "10:1e.0", "10:1b.0", "a0:1e.0", "a0:1b.0",
)  # fmt: skip


@dataclass(frozen=True)
class Device:
    """One Trainium device as the tools list it."""

    index: int
    core_ids: tuple[int, ...]
    memory_bytes: int
    connected_to: tuple[int, ...]
    """In the order of the documentation: above, left, below, right in the torus."""
    bdf: str
    """PCI address: domain, bus, device, function."""


def devices(of: Instance, cores: int | None = None) -> list[Device]:
    """The devices of an instance, cut to ``cores`` when fewer are rehearsed.

    Raises:
        TopologyError: ``cores`` is not between 1 and what the instance has.
    """
    count = of.cores if cores is None else cores
    if not 1 <= count <= of.cores:
        raise TopologyError(
            f"local_cores={count} is not possible on ml.{of.name}, which has {of.cores} NeuronCores. "
            f"Choose 1 to {of.cores}."
        )
    result = []
    for index in range(-(-count // of.cores_per_device)):
        first = index * of.cores_per_device
        ids = tuple(range(first, min(first + of.cores_per_device, count)))
        result.append(
            Device(index, ids, of.memory_per_device_bytes, _neighbours(index, of.devices), bdf(of, index))
        )
    return result


def bdf(of: Instance, index: int) -> str:
    """A device's PCI address, as the Neuron documentation shows it for trn1.2xlarge and trn1.32xlarge."""
    return f"0000:{'00:1e.0' if of.devices == 1 else _BDFS[index]}"


def _neighbours(index: int, count: int) -> tuple[int, ...]:
    """The four neighbours in the 4x4 torus; none on a single-device instance."""
    if count == 1:
        return ()
    side = int(count**0.5)
    row, column = divmod(index, side)
    around = (
        ((row - 1) % side, column),
        (row, (column - 1) % side),
        ((row + 1) % side, column),
        (row, (column + 1) % side),
    )
    return tuple(r * side + c for r, c in around)
