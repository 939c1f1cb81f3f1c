"""usage.json as objects: what the cores of a running job do now, and who waits for whom.

The simulator publishes what each process has done so far; the backend makes one document of it each second.
Everything is measured on the machine of the rehearsal. None of it is Trainium's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

QUIET_S = 3.0
"""A core that has published nothing for so long is compiling, executing one long graph, or not using the device."""
_BUSIER = 0.1
"""So much more of the time must a core execute than the others before they can be said to wait for it."""
_LARGEST = 1e24
"""No core counts as much: beyond it a script wrote the figure. Sums and quotients of two are finite, too."""
_LONGEST_NAME = 100


@dataclass(frozen=True)
class CoreUsage:
    """One process on its NeuronCores. Rates are those of the last second in which it ended a step.

    ``utilization``: share of the time in which graphs were executing, 0 to 1. ``processors``: CPUs of this
    machine in use. ``device_bytes`` and ``flops_per_second``: None where they are not counted.
    ``quiet_s``: since when nothing is new.
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
        """For JSON."""
        return asdict(self)

    @property
    def core_numbers(self) -> str:
        """``3``, ``0,1``, ``0-15``."""
        cores = self.cores
        return ",".join(map(str, cores)) if len(cores) < 3 else f"{cores[0]}-{cores[-1]}"


def read(document: Mapping[str, Any]) -> list[CoreUsage]:
    """Every process of every host, in order of ranks.

    What is not of the simulator's form is left out: a script can write where the simulator does.
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
    """The processes that the others wait for where cores exchange something, as far as that can be told; or none.

    Those with fewer steps than others are behind. Where all have ended as many, one that executes clearly longer of
    each second than all others is it.
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
    """Raises ``ValueError`` for what is no figure of a core."""
    if not isinstance(value, (int, float)) or not abs(value) <= _LARGEST:  # NaN is not
        raise ValueError(f"{value!r} is no figure of a core")
    return value
