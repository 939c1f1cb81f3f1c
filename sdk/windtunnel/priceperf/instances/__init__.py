"""The one home of every fact about an instance type.

`instances.json` holds the numbers, with unit, source and date. `InstanceType` derives the figures of
one core from them. A new instance type is one entry in that file. The simulator in the image reads
the same file (`neuron_sim.topology`).
"""

from __future__ import annotations

from .catalog import CATALOG, NEURON_TYPES, instance_type, instance_types, named_instance
from .instance_type import GIB, Accelerator, Figure, InstanceType

__all__ = [
    "CATALOG", "GIB", "NEURON_TYPES", "Accelerator", "Figure", "InstanceType", "instance_type", "instance_types",
    "named_instance",
]  # fmt: skip
