"""What the cores of a running job do now: rates from the backend's document, and the screen of `windtunnel top`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windtunnel.rendering import format as form

QUIET_S = 3.0
"""A core that has published nothing for so long is compiling, executing one long graph, or not using the device."""
_TITLES = (
    "HOST", "CORE", "PID", "UTILIZATION", "STEPS", "STEPS/S", "GRAPH", "GRAPHS", "COMPILED",
    "FLOP/S", "DEVICE", "HOST MEM", "CPUS", "",
)  # fmt: skip


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


def screen(job: str, instance_type: str, usages: Sequence[CoreUsage]) -> RenderableType:
    """The whole screen: a title, a row a process, the sums, what the columns mean."""
    title = Text(f"{job}   {instance_type}, simulated", style="bold")
    if not usages:
        return Group(title, Text("No core is in use yet."))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column, name in enumerate(_TITLES):
        table.add_column(name, justify="left" if column < 2 else "right", no_wrap=True)
    for usage in usages:
        table.add_row(*_cells(usage))
    notes = (
        "UTILIZATION: time in which graphs were executing, here. GRAPH: median execution. "
        "COMPILED: by XLA's CPU compiler. All measured on this machine; none of it is Trainium's."
    )
    return Group(title, table, Text(_sums(usages), style="bold"), Text(notes, style="dim"))


def _cells(usage: CoreUsage) -> tuple[str, ...]:
    unknown = "-"
    return (
        usage.host,
        ",".join(map(str, usage.cores)) if len(usage.cores) < 3 else f"{usage.cores[0]}-{usage.cores[-1]}",
        str(usage.pid),
        form.percent(usage.utilization),
        form.plain(usage.steps),
        f"{usage.steps_per_second:.1f}",
        unknown if usage.median_execution_s is None else form.seconds(usage.median_execution_s),
        str(usage.graphs),
        form.seconds(usage.compile_s),
        unknown if usage.flops_per_second is None else form.quantity(usage.flops_per_second, "FLOP/s"),
        unknown if usage.device_bytes is None else form.gibibytes(usage.device_bytes),
        form.gibibytes(usage.host_bytes),
        f"{usage.processors:.1f}",
        f"no step for {form.seconds(usage.quiet_s)}" if usage.quiet_s > QUIET_S else "",
    )


def _sums(usages: Sequence[CoreUsage]) -> str:
    busy = sum(usage.utilization for usage in usages) / len(usages)
    memory = form.gibibytes(sum(usage.host_bytes for usage in usages))
    processors = sum(usage.processors for usage in usages)
    return f"{len(usages)} processes: utilization {form.percent(busy)}, {memory} of memory, {processors:.1f} CPUs"
