"""What a running job's cores do, from the document that the backend publishes: rates from counts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

QUIET_S = 3.0
"""A core that has published nothing for so long is compiling, executing one long graph, or not using the device."""


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


def read(document: Mapping[str, Any]) -> list[CoreUsage]:
    """Every process of every host, in order of ranks. ``document``: of `TrainingJob.usage`.

    What is not of the simulator's form is left out: a script can write where the simulator does.
    """
    found = []
    for host in document["hosts"]:
        for core in host["cores"]:
            with suppress(KeyError, TypeError, AttributeError):
                found.append(_core(document, host["host"], core))
    return sorted(found, key=lambda usage: usage.rank)


def _core(document: Mapping[str, Any], host: str, core: Mapping[str, Any]) -> CoreUsage:
    now, before = core["counts"], core["before"]
    elapsed = core["time"] - before["time"] if before else 0.0

    def rate(name: str) -> float:
        grown = (now[name] or 0) - (before[name] or 0) if before else 0
        return grown / elapsed if elapsed > 0 else 0.0

    memory = core.get("device_memory")
    return CoreUsage(
        host=host,
        cores=tuple(core["cores"]),
        rank=core["rank"],
        pid=core["pid"],
        command=core["command"],
        steps=now["steps"],
        steps_per_second=rate("steps"),
        utilization=min(1.0, rate("execution_seconds")),
        executions_per_second=rate("executions"),
        median_execution_s=(core.get("latency") or {}).get("p50"),
        flops_per_second=None if now["flops"] is None else rate("flops"),
        graphs=now["compilations"],
        compile_s=now["compile_seconds"],
        processors=rate("user_seconds") + rate("system_seconds"),
        host_bytes=now["host_bytes"],
        device_bytes=None if memory is None else memory["total"],
        quiet_s=max(0.0, document["time"] - core["time"]),
    )
