"""Sums over the steps of one core, of training steps and of others. A training step is one with an optimizer."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from windtunnel.priceperf.workload.counters import Repeated, Steps, Updates
from windtunnel_local.service.observed import graph_work
from windtunnel_local.service.observed.counter_records import BY_NAME, Record, count, number, numbers, summed


def with_their_batches(steps: Sequence[Record], graphs: Mapping[str, Record]) -> list[Record]:
    """Join each training step with the steps that hold the rest of its work, such as the arrival of its batch.

    Some loops end a step between the batch and the training on it, as Hugging Face's Trainer does to gather a count
    from all cores. So a training step without samples takes over the last batch that no training step has used. Others
    end a step between the backward pass and the optimizer: a training step that has neither samples nor matrix products
    belongs to the training step before it. A pipeline runs several microbatches forward before the first one's backward
    pass. optimum-neuron's trainer fetches all batches of a gradient accumulation before its first pass. A step that
    ends in the middle of a pass is a part of the next step.
    """
    steps = list(_wholes(steps))
    joined: list[Record] = []
    waiting: list[Record] = []
    for step in steps:
        if not step.get("optimizer"):
            waiting.append(step)
            continue
        under_way = next((i for i, passed in enumerate(waiting) if passed.get("microbatch")), len(waiting))
        if not step.get("samples"):
            arrived = next((i for i in reversed(range(len(waiting))) if waiting[i].get("samples")), None)
            if arrived is not None and (arrived < under_way or _computes(step, graphs)):
                step = _sum_of([*waiting[arrived:], step])
                waiting = waiting[:arrived]
            elif joined and not _computes(step, graphs) and _has_passed(joined[-1], graphs):
                joined[-1] = _sum_of([joined[-1], *waiting[:under_way], step])
                waiting = waiting[under_way:]
                continue
        joined += [*waiting[:under_way], step]
        waiting = waiting[under_way:]
    return [*_shared_out(joined), *waiting]


def _wholes(steps: Sequence[Record]) -> Iterator[Record]:
    parts: list[Record] = []
    for step in steps:
        parts.append(step)
        if not step.get("part"):
            yield _sum_of(parts) if len(parts) > 1 else step
            parts = []
    yield from parts


def _has_passed(step: Record, graphs: Mapping[str, Record]) -> bool:
    return bool(step.get("samples")) or _computes(step, graphs)


def _shared_out(steps: Sequence[Record]) -> list[Record]:
    """If the first pass of a gradient accumulation has all its samples, spread them evenly over the passes."""
    shared = list(steps)
    passes: list[int] = []
    for index, step in enumerate(shared):
        if not step.get("optimizer"):
            continue
        passes.append(index)
        if step.get("updated"):
            first, *others = (count(shared[one], "samples") for one in passes)
            if others and not any(others):
                each, more = divmod(first, len(passes))
                for place, one in enumerate(passes):
                    shared[one] = {**shared[one], "samples": each + (place < more)}
            passes = []
    return shared


def _sum_of(steps: Sequence[Record]) -> Record:
    """Several steps as one: all quantities are added up, other members are taken from the last step."""
    collectives: dict[str, Counter[str]] = {}
    for step in steps:
        for name, use in step.get("collectives", {}).items():
            collectives.setdefault(name, Counter()).update(use)
    added = ["seconds", "samples", "collective_seconds", "input_wait_seconds", "compile_seconds"]
    if any("trace_seconds" in step for step in steps):
        added.append("trace_seconds")
    sums = {key: sum(number(step, key) for step in steps) for key in added}
    found = {
        **{key: dict(summed(steps, key)) for key in BY_NAME},
        **{flag: any(step.get(flag) for step in steps) for flag in ("waited", "updated")},
    }
    noted = {key: value for key, value in found.items() if value}
    return {**steps[-1], **sums, **noted, "collectives": collectives}


def total(steps: Sequence[Record], graphs: Mapping[str, Record], copies: int) -> Steps | None:
    """The sums over steps: work and collectives of one core, samples of all ``copies`` of the model."""
    if not steps:
        return None
    samples = [count(step, "samples") for step in steps]
    flops: dict[str, float] = {}
    bytes_accessed = 0.0
    runs = summed(steps, "graphs")
    for graph, times in runs.items():
        record = graphs.get(graph, {})
        for dtype, counted in numbers(record, "flops").items():
            flops[dtype] = flops.get(dtype, 0) + counted * times
        bytes_accessed += number(record, "bytes_accessed") * times
    seconds = [max(0.0, number(step, "seconds") - number(step, "compile_seconds")) for step in steps]
    traced = [step for step in steps if "trace_seconds" in step]
    return Steps(
        steps=len(steps),
        samples=sum(samples) * copies,
        # The median: the last batch of an epoch is often smaller.
        samples_per_step_per_core=statistics.median_high(samples),
        flops=flops,
        bytes_accessed=bytes_accessed,
        collectives=graph_work.collected((step, 1) for step in steps),
        seconds=sum(seconds),
        median_step_seconds=statistics.median(seconds),
        collective_seconds=sum(number(step, "collective_seconds") for step in steps),
        input_wait_seconds=sum(number(step, "input_wait_seconds") for step in steps),
        work=graph_work.total(runs, graphs, summed(steps, "sdpa")),
        trace_seconds=sum(number(step, "trace_seconds") for step in traced) if traced else None,
        least_trace_seconds=_least_trace(traced),
        reference_seconds=_reference(traced),
        launches=_launches(steps),
        steps_with_host_reads=sum(bool(step.get("accessed") or step.get("waited")) for step in steps),
        repeated=_repeated(steps, graphs),
        updates=_updates(steps),
    )


def of_first_passes(steps: Sequence[Record]) -> Sequence[Record]:
    """The steps without those of a short rehearsal's later passes, unless there are no others.

    Each of these passes is one step long. What a script does only in the first step of a pass, such as reading its
    loss, would otherwise seem to happen in most steps.
    """
    return [step for step in steps if not step.get("late")] or steps


def _repeated(steps: Sequence[Record], graphs: Mapping[str, Record]) -> Repeated | None:
    """The work that Neuron computes twice, from the graphs that the steps list as repeated; None if there is none."""
    runs = summed(steps, "repeated")
    if not runs:
        return None
    work = graph_work.total(runs, graphs, {})
    flops = sum(
        times * each
        for graph, times in runs.items()
        for each in numbers(graphs.get(graph, {}), "flops").values()
    )
    return Repeated(flops=flops, fused_bytes=0 if work is None else work.elementwise.activations.fused_bytes)


def _updates(steps: Sequence[Record]) -> Updates | None:
    """The steps of gradient accumulation in which the optimizer stepped; None if it stepped in all, or if unknown."""
    updating = [step for step in steps if step.get("updated")]
    if not 0 < len(updating) < len(steps):
        return None
    whole = _least_trace([step for step in updating if "trace_seconds" in step])
    bare = _least_trace([step for step in steps if "trace_seconds" in step and not step.get("updated")])
    return Updates(
        steps=len(updating),
        passes=_passes(steps),
        collectives=graph_work.collected((step, 1) for step in updating),
        least_trace_seconds=None if whole is None or bare is None else max(0.0, whole - bare),
    )


def _passes(steps: Sequence[Record]) -> int:
    """The number of passes of a gradient accumulation: the median over all passes.

    Short accumulations, at the end of a pass over a loader that was cut short, would change a mean, but not this.
    Steps after the last update, of a script that was ended early, are left out.
    """
    ends = [number for number, step in enumerate(steps, 1) if step.get("updated")]
    lengths = [end - before for before, end in zip([0, *ends], ends, strict=False)]
    return statistics.median_high(length for length in lengths for _ in range(length))


def _computes(step: Record, graphs: Mapping[str, Record]) -> bool:
    """Whether the step ran a graph with matrix products, or a graph without a record."""
    return any(
        graph not in graphs or sum(numbers(graphs[graph], "flops").values()) > 0
        for graph in step.get("graphs", {})
    )


def _least_trace(steps: Sequence[Record]) -> float | None:
    """Mean CPU seconds of tracing a step, where each kind of step counts with its fastest one; None: not measured.

    Steps that run the same graphs trace the same operations; they differ only in how much the simulated cores,
    which compute on the same processors, slowed the script down. Steps that compiled are left out, because the
    script's share of the thread's time is then only a guess.
    """
    kinds = _alike(steps)
    count = sum(map(len, kinds))
    return sum(len(kind) * min(map(_traced, kind)) for kind in kinds) / count if count else None


def _launches(steps: Sequence[Record]) -> float | None:
    """Operations that a GPU would launch in a step: the median of the steps that counted them; None if none did."""
    counted = [number(step, "launches") for step in steps if number(step, "launches") > 0]
    return statistics.median(counted) if counted else None


def _reference(steps: Sequence[Record]) -> float | None:
    """Seconds of the reference work under the same conditions as `_least_trace`; None: not measured.

    Tracing and reference work are timed in the same steps, and the same load slows both down. So the sum of the
    reference's seconds is divided by the sum of how many times longer than the fastest the tracing of these steps
    took: in four rehearsals of one job this varied by 18 %, and the fastest reference over the fastest tracing by 41 %.
    """
    reference_s = slowness = 0.0
    for kind in _alike(steps):
        least = min(map(_traced, kind))
        for step in kind:
            if least > 0 and number(step, "reference_seconds") > 0:
                reference_s += number(step, "reference_seconds")
                slowness += _traced(step) / least
    return reference_s / slowness if slowness else None


def _alike(steps: Sequence[Record]) -> list[list[Record]]:
    kinds: dict[frozenset[tuple[str, int]], list[Record]] = {}
    for step in steps:
        if not step.get("compile_seconds"):
            kinds.setdefault(frozenset(step.get("graphs", {}).items()), []).append(step)
    return list(kinds.values())


def _traced(step: Record) -> float:
    return number(step, "trace_seconds")
