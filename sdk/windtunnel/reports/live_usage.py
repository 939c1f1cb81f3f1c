"""The screen of `windtunnel top`: what the cores of a running job do now."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windtunnel.priceperf.workload.usage import QUIET_S, CoreUsage
from windtunnel.rendering import format as form

_TITLES = (
    "HOST", "CORE", "PID", "UTILIZATION", "STEPS", "STEPS/S", "GRAPH", "GRAPHS", "COMPILED",
    "FLOP/S", "DEVICE", "HOST MEM", "CPUS", "",
)  # fmt: skip


def screen(job: str, instance_type: str, usages: Sequence[CoreUsage]) -> RenderableType:
    """The whole screen: a title, a row for each process, the sums, and what the columns mean."""
    title = Text(f"{job}   {instance_type}, simulated", style="bold")
    if not usages:
        return Group(title, Text("No core is in use yet."))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column, name in enumerate(_TITLES):
        table.add_column(name, justify="left" if column < 2 else "right", no_wrap=True)
    for usage in usages:
        table.add_row(*_cells(usage))
    notes = (
        "UTILIZATION: share of the time in which graphs ran. GRAPH: median time of a run. COMPILED: by "
        "XLA's CPU compiler. All of it is measured on this machine; nothing is Trainium's."
    )
    return Group(title, table, Text(_sums(usages), style="bold"), Text(notes, style="dim"))


def _cells(usage: CoreUsage) -> tuple[str, ...]:
    unknown = "-"
    return (
        usage.host,
        usage.core_numbers,
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
    many = f"{len(usages)} process{'' if len(usages) == 1 else 'es'}"
    return f"{many}: utilization {form.percent(busy)}, {memory} of memory, {processors:.1f} CPUs"
