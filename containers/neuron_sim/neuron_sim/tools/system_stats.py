"""Processors and memory of this machine, from /proc. The container plays the instance."""

from __future__ import annotations

from pathlib import Path

from neuron_sim import cgroup

_FIELDS = ("user", "nice", "system", "idle", "io_wait", "irq", "soft_irq")


Ticks = dict[str, list[int]]
"""By ``cpu``, ``cpu0``, ...: ticks since the machine's start, in the order of `_FIELDS`."""


def processor_ticks(text: str | None = None) -> tuple[Ticks, int]:
    """Ticks, and context switches since the machine's start. ``text``: of /proc/stat."""
    ticks: Ticks = {}
    switches = 0
    for line in (text if text is not None else Path("/proc/stat").read_text()).splitlines():
        name, *numbers = line.split()
        if name.startswith("cpu"):
            ticks[name] = [int(number) for number in numbers[: len(_FIELDS)]]
        elif name == "ctxt":
            switches = int(numbers[0])
    return ticks, switches


def processor_usage(before: tuple[Ticks, int], after: tuple[Ticks, int]) -> dict[str, object]:
    """``average_usage``, ``usage_data`` and ``context_switch_count`` between two looks; in percent."""
    shares = {name: _shares(before[0].get(name), ticks) for name, ticks in after[0].items()}
    average = shares.pop("cpu", {})
    return {
        "average_usage": average,
        "usage_data": {name.removeprefix("cpu"): share for name, share in shares.items()},
        "context_switch_count": after[1] - before[1],
    }


def memory() -> dict[str, int]:
    """Memory in bytes; the total is the container's limit if it has one."""
    info = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        info[name] = int(rest.split()[0]) * 1024
    total = info["MemTotal"]
    used = total - info["MemAvailable"]
    limit, charged = cgroup.memory_limit(), cgroup.memory_charged()
    if charged is not None and limit < total:
        total, used = limit, charged
    return {
        "memory_total_bytes": total,
        "memory_used_bytes": used,
        "swap_total_bytes": info.get("SwapTotal", 0),
        "swap_used_bytes": info.get("SwapTotal", 0) - info.get("SwapFree", 0),
    }


def _shares(before: list[int] | None, after: list[int]) -> dict[str, float]:
    spent = [b - a for a, b in zip(before or [0] * len(after), after, strict=True)]
    total = sum(spent) or 1
    return {name: round(100 * ticks / total, 2) for name, ticks in zip(_FIELDS, spent, strict=True)}
