"""The instances that are simulated: devices, cores, memory, names.

The numbers are in `instances.json`, which is the SDK's file: a link to it in a checkout, a copy in the
image. Source of the torus: AWS Neuron documentation, "Trn1 architecture".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neuron_sim.errors import TopologyError

GIB = 1024**3
SIMULATED_INSTANCE_ID = "i-0simulated00000000"
"""The id of the EC2 instance that the tools print."""


@dataclass(frozen=True)
class NumaNode:
    """A part of the host: its name, its CPUs as Linux lists them, and the devices attached to it."""

    name: str
    cpus: str
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Instance:
    """One instance type. Cores are logical ones, as AWS's tools count them."""

    name: str
    devices: int
    cores_per_device: int
    memory_per_device_bytes: int
    """Bytes of a device's HBM."""
    logical_core_config: int
    """How many physical cores make one logical core: AWS's LNC."""
    logical_core_configs: tuple[int, ...]
    """The values that the device could be set to; only ``logical_core_config`` is simulated."""
    device_kind: str
    """What `xm.xla_device_kind()` answers."""
    device_type: str
    device_version: str
    core_version: str
    compiler_targets: tuple[str, ...]
    """Targets of neuronx-cc whose code runs on this instance; the first is the platform's name."""
    has_efa: bool
    """EFA is the network that NeuronCores of several instances need between them."""
    pci_addresses: tuple[str, ...]
    numa_nodes: tuple[NumaNode, ...]

    @property
    def cores(self) -> int:
        """NeuronCores of the whole instance."""
        return self.devices * self.cores_per_device

    @property
    def memory_per_core_bytes(self) -> int:
        """HBM that one core can use."""
        return self.memory_per_device_bytes // self.cores_per_device

    @property
    def has_logical_cores(self) -> bool:
        """Whether physical cores can be joined to logical ones; if so, the tools print that setting."""
        return len(self.logical_core_configs) > 1


@cache
def instances() -> dict[str, Instance]:
    """All simulated instances, by name without ``ml.``."""
    data = json.loads(Path(__file__).with_name("instances.json").read_text(encoding="utf-8"))
    listed, chips = data["instances"], data["accelerators"]
    found = {}
    for name, entry in listed.items():
        whole = {**listed.get(entry.get("like"), {}), **entry}
        chip = chips[whole["accelerator"]]
        if "neuron" in chip:
            found[name.removeprefix("ml.")] = _instance(name.removeprefix("ml."), whole, chip)
    return found


def compiler_targets() -> tuple[str, ...]:
    """The targets of neuronx-cc for all instances together."""
    return tuple(sorted({target for each in instances().values() for target in each.compiler_targets}))


def is_simulated(name: str) -> bool:
    """Whether an instance of this name, with or without ``ml.``, has NeuronCores that can be played."""
    return name.removeprefix("ml.") in instances()


def instance(name: str) -> Instance:
    """The instance of this name, with or without SageMaker's ``ml.``.

    Raises:
        TopologyError: the name is not simulated; the message lists the simulated ones.
    """
    try:
        return instances()[name.removeprefix("ml.")]
    except KeyError:
        known = ", ".join(f"ml.{known}" for known in instances())
        raise TopologyError(
            f"instance type {name!r} is not simulated. Simulated are: {known}. "
            "Set instance_type= of the Estimator to one of them."
        ) from None


def _instance(name: str, entry: dict[str, Any], chip: dict[str, Any]) -> Instance:
    neuron, devices, vcpus = chip["neuron"], entry["accelerators"], entry["vcpus"]
    config = chip["logical_core_config"]
    undivided = [{"name": "-1", "cpus": f"0-{vcpus - 1}", "devices": range(devices)}]
    return Instance(
        name=name,
        devices=devices,
        cores_per_device=chip["cores"] // config,
        memory_per_device_bytes=int(chip["memory"].removesuffix(" GiB")) * GIB,
        logical_core_config=config,
        logical_core_configs=tuple(chip["logical_core_configs"]),
        device_kind=neuron["device_kind"],
        device_type=neuron["device_type"],
        device_version=neuron["device_version"],
        core_version=neuron["core_version"],
        compiler_targets=tuple(neuron["compiler_targets"]),
        has_efa=entry.get("efa", True),
        pci_addresses=tuple(entry["pci_addresses"]),
        numa_nodes=tuple(
            NumaNode(node["name"], node["cpus"], tuple(node["devices"]))
            for node in entry.get("numa_nodes", undivided)
        ),
    )


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
    numa_node: NumaNode


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
        result.append(
            Device(
                index,
                tuple(range(first, min(first + of.cores_per_device, count))),
                of.memory_per_device_bytes,
                _neighbours(index, of),
                f"0000:{of.pci_addresses[index]}",
                next(node for node in of.numa_nodes if index in node.devices),
            )
        )
    return result


def _neighbours(index: int, of: Instance) -> tuple[int, ...]:
    """The four neighbours in the square torus; none on a single-device instance."""
    if of.devices == 1:
        return ()
    side = math.isqrt(of.devices)
    if side * side != of.devices:
        raise TopologyError(
            f"{of.devices} devices of ml.{of.name} make no square, in which those of trn1 and trn2 are linked. Write"
            " down in neuron_sim/topology.py how they are."
        )
    row, column = divmod(index, side)
    around = (
        ((row - 1) % side, column),
        (row, (column - 1) % side),
        ((row + 1) % side, column),
        (row, (column + 1) % side),
    )
    return tuple(r * side + c for r, c in around)
