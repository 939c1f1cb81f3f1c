"""One step of a job in plain words: what it computes, moves in memory and exchanges. From counters; pure.

Counts do not depend on the machine; seconds were measured on this machine, and the text says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windtunnel.priceperf.workload.counters import Counters, Steps
from windtunnel.rendering import format as fmt
from windtunnel_local.ui.formats import duration, size
from windtunnel_local.ui.text import visible

OPERATIONS = {
    "all_reduce": "adds up over all cores (all_reduce)",
    "all_gather": "gathers from all cores (all_gather)",
    "reduce_scatter": "adds up and shares out (reduce_scatter)",
    "all_to_all": "sends from each core to each (all_to_all)",
    "collective_permute": "passes on to another core (collective_permute)",
    "broadcast": "sends from one core to all (broadcast)",
    "send": "sends to another core (send)",
    "recv": "receives from another core (recv)",
}
"""What each collective does, by the kind under which it is counted."""
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Fact:
    """A row of the table: what, how much, and an explanation."""

    what: str
    value: str
    note: str = ""


def facts(found: Counters) -> list[Fact]:
    """All rows of the table: first the step, then the model and its compilation."""
    rows: list[Fact] = []
    for steps, name in ((found.train, "training"), (found.other, "other")):
        if steps is not None and (name == "training" or found.train is None):
            rows += _step(steps, found)
    return [*rows, *_model(found), *_compiling(found)]


def _step(steps: Steps, found: Counters) -> Iterator[Fact]:
    count = steps.steps
    cores = found.world_size or found.cores_used or 1
    yield Fact("Steps counted", f"{count:,.0f}", "of each core")
    samples = steps.samples_per_step_per_core
    if samples:  # 0: the script has no data loader by which samples are counted
        on_all = f"{fmt.given(samples * cores)} on {cores:,.0f} cores" if cores > 1 else ""
        yield Fact("Samples a step", f"{fmt.given(samples)} a core", on_all)
    for dtype, flops in steps.flops.items():
        products = f"products and convolutions in {visible(dtype, _LONGEST_NAME)}"
        yield Fact("Computes", fmt.quantity(flops / count, "FLOP a core"), products)
    yield Fact("Moves in memory", size(steps.bytes_accessed / count), "at least: what no compiler can avoid")
    if not steps.collectives:
        yield Fact(
            "Exchanges", "nothing", "no core learns from another" if cores > 1 else "one core has no other"
        )
    for kind, done in steps.collectives.items():
        each = f"{size(done.bytes / count)} from each core"
        operation = OPERATIONS.get(kind, visible(kind, _LONGEST_NAME))
        yield Fact("Exchanges", each, f"{operation}, {_times(done.count / count)} a step")
    if steps.median_step_seconds is not None:
        yield Fact("Takes here", fmt.seconds(steps.median_step_seconds), "the median step, on this machine")
    yield from _shares(steps)
    if steps.steps_with_host_reads:
        share = steps.steps_with_host_reads / count
        yield Fact(
            "The host waits",
            f"in {fmt.percent(share)} of the steps",
            "the script fetched a value in them, or waited for the device",
        )


def _shares(steps: Steps) -> Iterator[Fact]:
    """Shares of the steps' time on this machine."""
    total = steps.seconds
    if not total:
        return
    for what, part in (
        ("exchanging", steps.collective_seconds),
        ("waiting for input", steps.input_wait_seconds),
    ):
        if part is not None:
            yield Fact(
                f"Of that {what}",
                fmt.percent(min(1.0, part / total)),
                "of the steps' time, on this machine",
            )


def _model(found: Counters) -> Iterator[Fact]:
    held = found.parameters
    if held is not None:
        parts = (
            (held.parameter_bytes, "parameters"),
            (held.gradient_bytes, "gradients"),
            (held.optimizer_bytes, "optimizer's state"),
        )
        words = ", ".join(f"{size(part)} {name}" for part, name in parts if part)
        yield Fact("Parameters", fmt.quantity(held.count, ""), f"on one core: {words}" if words else "")
    memory = found.device_memory
    if memory is not None and memory.total:
        most = f"of {memory.limit / 2**30:.4g} GiB" if memory.limit else ""
        place = f", at {visible(memory.line, _LONGEST_NAME)}" if memory.line else ""
        yield Fact("Memory of a core, at most", fmt.gibibytes(memory.total), f"{most}{place}".lstrip(", "))


def _compiling(found: Counters) -> Iterator[Fact]:
    graphs = found.graphs
    if not graphs.count:
        return
    here = "" if graphs.compile_seconds is None else f"{duration(graphs.compile_seconds)} of compiling here"
    cached = f", {graphs.cached:,} from the Neuron cache" if graphs.cached else ""
    yield Fact("Graphs", f"{graphs.count:,}", f"{here}{cached}".lstrip(", "))


def _times(count: float) -> str:
    return "once" if abs(count - 1) < 0.005 else f"{fmt.given(fmt.rounded(count, 3))} times"
