"""Rows of the tables of modelled figures: who works on a step, how a described model is split, a step's parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from windtunnel.priceperf import Estimate, Training
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Style

_PARTS_BELOW = 0.005  # of a step: smaller parts are left out of the table


def row_of(
    estimates: Sequence[Estimate], name: str, cell: Callable[[Estimate], str], style: Style = "normal"
) -> Row:
    """A row with a cell for each estimate."""
    return Row(name, tuple(map(cell, estimates)), style)


def step_rows(estimates: Sequence[Estimate]) -> list[Row]:
    """Who works on a step, at which batch, and how long it takes."""
    row = partial(row_of, estimates)
    described = all(item.training is not None for item in estimates)
    return [
        row("Workers", lambda e: fmt.many(e.cores, e.instance.core_name)),
        row("Global batch", lambda e: fmt.plain(e.global_batch)),
        *(_split_rows(estimates) if described else [
            row("Samples a worker", lambda e: fmt.plain(e.samples_per_core))
        ]),
        row("One step", lambda e: fmt.modelled_seconds(e.step.total_s), "total"),
        row("interval", lambda e: fmt.modelled_span(e.step_interval_s, e.step.total_s), "detail"),
    ]  # fmt: skip


def part_rows(estimates: Sequence[Estimate]) -> list[Row]:
    """The parts that add up to a step."""
    names = [
        name
        for name in estimates[0].step.parts
        if any(item.step.parts[name] >= _PARTS_BELOW * item.step.total_s for item in estimates)
    ]
    return [
        Row(name, tuple(fmt.modelled_seconds(item.step.parts[name]) for item in estimates), "detail")
        for name in names
    ]


def _split_rows(estimates: Sequence[Estimate]) -> list[Row]:
    """How the described model is split over the workers, and whether it fits."""

    def row(name: str, text: Callable[[Training], str]) -> Row:
        return Row(name, tuple("" if item.training is None else text(item.training) for item in estimates))

    return [
        row(
            "Tensor x pipeline x data",
            lambda t: f"{t.tensor_parallel} x {t.pipeline_parallel} x {t.data_parallel}",
        ),
        row("Passes x sequences", lambda t: f"{round(t.microbatches):,} x {fmt.plain(t.microbatch)}"),
        row("Recomputed", lambda t: t.recompute),
        row("Attention", lambda t: t.attention),
        row_of(estimates, "Memory of a worker", _memory),
    ]


def _memory(item: Estimate) -> str:
    need = item.memory
    if need is None:
        return ""
    text = f"{fmt.gibibytes(need.needed_bytes)} of {fmt.gibibytes(need.usable_bytes)}"
    return text if need.fits else f"{text}: NO"
