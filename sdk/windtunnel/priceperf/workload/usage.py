"""usage.json as objects: what the cores of a running job do now, and which core the others wait for.

Each simulated process publishes what it has done so far; the backend writes all into one document every second.
All figures are measured on the rehearsal's machine, none is a figure of Trainium.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

QUIET_S = 3.0
"""A core that publishes nothing for this time is compiling, executing one long graph, or not using the device."""
_BUSIER = 0.1
"""The others wait for a core if its utilization is higher than theirs by more than this."""
_LARGEST = 1e24
"""Upper limit of a figure, larger than any real one: a script may have written it. Sums and ratios stay finite."""
_LONGEST_NAME = 100


@dataclass(frozen=True)
class CoreUsage:
    """One process on its NeuronCores. Rates are those of the last second in which it ended a step.

    ``utilization``: share of the time in which graphs were executing, 0 to 1. ``processors``: CPUs in use on this
    machine. ``device_bytes`` and ``flops_per_second``: None if not counted.
    ``quiet_s``: seconds since the process last published something.
    """

    host: str
    cores: tuple[int, ...]
    rank: int
    pid: int
    command: str
    steps: int
    steps_per_second: float
    utilization: float
    executions_per_second: float
    median_execution_s: float | None
    flops_per_second: float | None
    graphs: int
    compile_s: float
    processors: float
    host_bytes: int
    device_bytes: int | None
    quiet_s: float

    def as_dict(self) -> dict[str, Any]:
        """All fields as a dict, for JSON."""
        return asdict(self)

    @property
    def core_numbers(self) -> str:
        """The numbers of its cores as text: ``3``, ``0,1`` or ``0-15``."""
        cores = self.cores
        return ",".join(map(str, cores)) if len(cores) < 3 else f"{cores[0]}-{cores[-1]}"


def read(document: Mapping[str, Any]) -> list[CoreUsage]:
    """Read every process of every host, in order of ranks.

    Entries that do not have the simulator's form are left out: a script can write to the same place.
    """
    found = []
    for host in _listed(document, "hosts"):
        for core in _listed(host, "cores"):
            with suppress(KeyError, TypeError, AttributeError, ValueError, OverflowError):
                found.append(_core(document, str(host["host"])[:_LONGEST_NAME], core))
    return sorted(found, key=lambda usage: usage.rank)


def _listed(holder: Any, name: str) -> list[Any]:
    found = holder.get(name) if isinstance(holder, Mapping) else None
    return found if isinstance(found, list) else []


def waited_for(usages: Sequence[CoreUsage]) -> tuple[CoreUsage, ...]:
    """The processes that the others wait for in collectives; empty if there is none, or if it is not clear.

    These are the processes with fewer steps than others. If all have as many steps, it is the one whose utilization
    is clearly higher than that of all others.
    """
    if len(usages) < 2:
        return ()
    steps = max(usage.steps for usage in usages)
    behind = tuple(usage for usage in usages if usage.steps < steps)
    if behind:
        return behind
    first, second = sorted(usages, key=lambda usage: usage.utilization, reverse=True)[:2]
    return (first,) if first.utilization - second.utilization > _BUSIER else ()


def _core(document: Mapping[str, Any], host: str, core: Mapping[str, Any]) -> CoreUsage:
    now, before = core["counts"], core["before"]
    elapsed = _number(core["time"]) - _number(before["time"]) if before else 0.0

    def rate(name: str) -> float:
        grown = _number(now[name] or 0) - _number(before[name] or 0) if before else 0.0
        return max(0.0, grown) / elapsed if elapsed > 0 else 0.0

    memory = core.get("device_memory")
    median = (core.get("latency") or {}).get("p50")
    return CoreUsage(
        host=host,
        cores=tuple(_whole(number) for number in core["cores"]),
        rank=_whole(core["rank"]),
        pid=_whole(core["pid"]),
        command=str(core["command"]),
        steps=_whole(now["steps"]),
        steps_per_second=rate("steps"),
        utilization=min(1.0, rate("execution_seconds")),
        executions_per_second=rate("executions"),
        median_execution_s=None if median is None else _number(median),
        flops_per_second=None if now["flops"] is None else rate("flops"),
        graphs=_whole(now["compilations"]),
        compile_s=_number(now["compile_seconds"]),
        processors=rate("user_seconds") + rate("system_seconds"),
        host_bytes=_whole(now["host_bytes"]),
        device_bytes=None if memory is None else _whole(memory["total"]),
        quiet_s=max(0.0, _number(document["time"]) - _number(core["time"])),
    )


def _whole(value: Any) -> int:
    return int(_number(value))


def _number(value: Any) -> float:
    """Return ``value``; raise ``ValueError`` if it cannot be a figure of a core."""
    if not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:  # "not ... <=" also catches NaN
        raise ValueError(f"{value!r} is no figure of a core")
    return value
