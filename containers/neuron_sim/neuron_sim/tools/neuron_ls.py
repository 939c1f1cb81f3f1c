"""`neuron-ls`: the simulated devices and who uses them, as text or JSON.

SageMaker's toolkit runs `neuron-ls -j` before each job and sums `nc_count`: that number
becomes torchrun's `--nproc_per_node`. So this stays quick to start, and imports no torch.
Formats: AWS Neuron documentation, "Neuron LS User Guide".
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import processes, settings, topology
from neuron_sim.errors import NeuronSimError
from neuron_sim.runtime import claims, usage_reader
from neuron_sim.tools import tables

NARROW, WIDE = 40, 80
"""To how many characters a command is cut, as in the documentation's examples."""
_NO_RUNTIME = "NA"


@dataclass(frozen=True)
class Process:
    """A process that uses a device."""

    pid: int
    command: str
    runtime_version: str


Users = Mapping[int, Sequence[Process]]
"""Processes by device."""


def main(argv: list[str] | None = None) -> int:
    """Print the devices; 0, or 2 with a message when the settings are wrong."""
    parser = argparse.ArgumentParser(prog="neuron-ls", description="List the simulated Neuron devices.")
    parser.add_argument("-j", "--json-output", action="store_true", help="print JSON")
    parser.add_argument("-w", "--wide", action="store_true", help="show more of each process's command")
    parser.add_argument(
        "-a",
        "--show-all-procs",
        action="store_true",
        help="also processes that use no core, such as this one",
    )
    parser.add_argument("-t", "--topology", action="store_true", help="also how the devices are connected")
    arguments = parser.parse_args(argv)
    try:
        current = settings.read()
        listed = topology.devices(current.instance, current.local_cores)
    except NeuronSimError as error:
        print(f"neuron-ls: {error}", file=sys.stderr)
        return 2
    users = find_users(current.cores_dir, listed, everyone=arguments.show_all_procs)
    width = WIDE if arguments.wide else NARROW
    if arguments.json_output:
        print(json.dumps([as_json(device, current.instance, users, width) for device in listed], indent=4))
        return 0
    print(as_text(listed, current.instance, users, width))
    if arguments.topology:
        print(f"\n\n{tables.torus(len(listed), current.instance.devices)}")
    return 0


def find_users(
    folder: Path, listed: Sequence[topology.Device], *, everyone: bool
) -> dict[int, list[Process]]:
    """Who uses which device: those who hold its cores and, with ``everyone``, those who look at them."""
    found: dict[int, dict[int, Process]] = {device.index: {} for device in listed}
    for core in usage_reader.running(folder):
        process = Process(core.pid, core.command, core.runtime_version or _NO_RUNTIME)
        for device in listed:
            if not set(device.core_ids).isdisjoint(core.cores):
                found[device.index][core.pid] = process
    if everyone:
        watching = [pid for place in usage_reader.folders(folder) for pid in claims.observers(place)]
        for pid in (*watching, os.getpid()):
            for users in found.values():
                users.setdefault(pid, Process(pid, processes.command(pid), _NO_RUNTIME))
    return {device: sorted(users.values(), key=lambda user: user.pid) for device, users in found.items()}


def as_json(
    device: topology.Device, of: topology.Instance, users: Users | None = None, width: int = NARROW
) -> dict[str, object]:
    """One device in the documented JSON form. ``memory_size`` in bytes."""
    return {
        "neuron_device": device.index,
        "bdf": device.bdf,
        "cpu_affinity": device.numa_node.cpus,
        "numa_node": device.numa_node.name,
        "connected_to": list(device.connected_to) or None,
        "nc_count": len(device.core_ids),
        **({"logical_neuroncore_config": of.logical_core_config} if of.has_logical_cores else {}),
        "memory_size": device.memory_bytes,
        "neuroncore_ids": list(device.core_ids),
        "neuron_processes": [
            {
                "pid": user.pid,
                "command": tables.shortened(user.command, width),
                "neuron_runtime_version": user.runtime_version,
            }
            for user in (users or {}).get(device.index, ())
        ],
    }


def as_text(
    listed: Sequence[topology.Device],
    of: topology.Instance,
    users: Users | None = None,
    width: int = NARROW,
) -> str:
    """The documented table; the columns of connections and of processes only where there are any."""
    columns: list[tuple[str, str, Callable[[topology.Device], str]]] = [
        ("NEURON", "DEVICE", lambda device: str(device.index)),
        ("NEURON", "CORES", lambda device: str(len(device.core_ids))),
        ("NEURON", "CORE IDS", lambda device: _span(device.core_ids)),
        ("NEURON", "MEMORY", lambda device: f"{device.memory_bytes // topology.GIB} GB"),
        ("PCI", "BDF", lambda device: device.bdf),
        ("CPU", "AFFINITY", lambda device: device.numa_node.cpus),
        ("NUMA", "NODE", lambda device: device.numa_node.name),
    ]
    if any(device.connected_to for device in listed):
        columns.insert(4, ("CONNECTED", "DEVICES", lambda device: ", ".join(map(str, device.connected_to))))
    heading = [(above, below) for above, below, _ in columns]
    blocks = []
    shown = any((users or {}).values())
    if shown:
        heading += [("PID", ""), ("COMMAND", ""), ("RUNTIME", "VERSION")]
    for device in listed:
        cells = [cell(device) for _, _, cell in columns]
        rows = [
            [str(user.pid), tables.shortened(user.command, width), user.runtime_version]
            for user in (users or {}).get(device.index, ())
        ]
        first, rest = (rows[:1] or [[""] * 3])[0], rows[1:]
        blocks.append([cells + (first if shown else []), *([[""] * len(cells) + row for row in rest])])
    lines = [f"instance-type: {of.name}", f"instance-id: {topology.SIMULATED_INSTANCE_ID}"]
    if of.has_logical_cores:
        lines.append(f"logical-neuroncore-config: {of.logical_core_config}")
    return "\n".join([*lines, *tables.boxed(heading, blocks)])


def _span(ids: tuple[int, ...]) -> str:
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]}-{ids[-1]}"


if __name__ == "__main__":
    raise SystemExit(main())
