"""Explains why cores are not available, and what to do, which the Neuron runtime's own message leaves open."""

from __future__ import annotations

import os
from pathlib import Path

from neuron_sim import processes, settings
from neuron_sim.runtime import usage_reader
from neuron_sim.runtime.cores import CoreRequest, spans

_SHOWN = 4


def explain(folder: Path, request: CoreRequest, available: int) -> str:
    """Sentences that say which processes hold the requested cores, and what to do."""
    wanted = set(range(available) if request.cores is None else request.cores)
    holders = [core for core in usage_reader.running(folder) if not wanted.isdisjoint(core.cores)]
    if not holders:
        return f"This host has {available} NeuronCores. Ask for fewer, or choose a larger instance_type or local_cores."
    parts = [
        f"Process {holder.pid} ({holder.command}) holds {_text(holder.cores)}" for holder in holders[:_SHOWN]
    ]
    if len(holders) > _SHOWN:
        parts.append(f"{len(holders) - _SHOWN} more processes hold the others")
    return f"{'; '.join(parts)}. {_advice({holder.pid for holder in holders})}"


def _advice(holders: set[int]) -> str:
    if not holders.isdisjoint(processes.ancestors(os.getpid())):
        return (
            "It has started this process: a script that starts others for the device must not use the device "
            "itself before."
        )
    if said := settings.says_of_others():
        return (
            f"{said}, but torch_xla knows of no other worker: it takes such a process for one alone, with all cores. "
            "Start the workers with torchrun."
        )
    return (
        "A process keeps its cores until it ends, and takes all when it does not say which: give each its own with "
        "NEURON_RT_VISIBLE_CORES or NEURON_RT_NUM_CORES."
    )


def _text(cores: tuple[int, ...]) -> str:
    rows = [str(first) if first == last else f"{first}-{last}" for first, last in spans(cores)]
    return f"NeuronCore{'s' if len(cores) > 1 else ''} {','.join(rows)}"
