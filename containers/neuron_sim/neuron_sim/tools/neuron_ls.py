"""`neuron-ls`: the simulated devices, as text or JSON.

SageMaker's toolkit runs `neuron-ls -j` and sums `nc_count`: that number becomes
torchrun's `--nproc_per_node`. Formats: AWS Neuron documentation, "neuron-ls".
"""

from __future__ import annotations

import argparse
import json
import sys

from neuron_sim import settings, topology
from neuron_sim.errors import NeuronSimError

SIMULATED_INSTANCE_ID = "i-0simulated00000000"


def main(argv: list[str] | None = None) -> int:
    """Print the devices; 0, or 2 with a message when the settings are wrong."""
    parser = argparse.ArgumentParser(prog="neuron-ls", description="List the simulated Neuron devices.")
    parser.add_argument("-j", "--json-output", action="store_true", help="print JSON")
    arguments = parser.parse_args(argv)
    try:
        current = settings.read()
        listed = topology.devices(current.instance, current.local_cores)
    except NeuronSimError as error:
        print(f"neuron-ls: {error}", file=sys.stderr)
        return 2
    if arguments.json_output:
        print(json.dumps([as_json(device, current.instance) for device in listed], indent=4))
    else:
        print(as_text(listed, current.instance))
    return 0


def as_json(device: topology.Device, of: topology.Instance) -> dict[str, object]:
    """One device in the documented JSON form. ``memory_size`` in bytes."""
    return {
        "neuron_device": device.index,
        "bdf": _bdf(device.index),
        "cpu_affinity": f"0-{of.vcpus - 1}",
        "numa_node": "-1",
        "connected_to": list(device.connected_to) or None,
        "nc_count": len(device.core_ids),
        "memory_size": device.memory_bytes,
        "neuroncore_ids": list(device.core_ids),
        "neuron_processes": [],
    }


def as_text(listed: list[topology.Device], of: topology.Instance) -> str:
    """The documented table."""
    header = [
        ("NEURON", "DEVICE"),
        ("NEURON", "CORES"),
        ("NEURON", "CORE IDS"),
        ("NEURON", "MEMORY"),
        ("PCI", "BDF"),
        ("CPU", "AFFINITY"),
        ("NUMA", "NODE"),
    ]
    rows: list[tuple[str, ...]] = [
        (
            str(device.index),
            str(len(device.core_ids)),
            _span(device.core_ids),
            f"{device.memory_bytes // topology.GIB} GB",
            _bdf(device.index),
            f"0-{of.vcpus - 1}",
            "-1",
        )
        for device in listed
    ]
    if any(device.connected_to for device in listed):
        header.insert(4, ("CONNECTED", "DEVICES"))
        rows = [
            (*row[:4], ", ".join(map(str, device.connected_to)), *row[4:])
            for row, device in zip(rows, listed, strict=True)
        ]
    widths = [
        max(len(title[0]), len(title[1]), *(len(row[column]) for row in rows))
        for column, title in enumerate(header)
    ]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [f"instance-type: {of.name}", f"instance-id: {SIMULATED_INSTANCE_ID}", rule]
    for line in range(2):
        titles = (title[line].center(width) for title, width in zip(header, widths, strict=True))
        lines.append("| " + " | ".join(titles) + " |")
    lines.append(rule)
    for row in rows:
        lines.append(
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        )
    lines.append(rule)
    return "\n".join(lines)


def _span(ids: tuple[int, ...]) -> str:
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]}-{ids[-1]}"


def _bdf(index: int) -> str:
    """A PCI address; the first is the one that the documentation shows for trn1.2xlarge."""
    return "0000:00:1e.0" if index == 0 else f"0000:{0x10 + index:02x}:1e.0"


if __name__ == "__main__":
    raise SystemExit(main())
