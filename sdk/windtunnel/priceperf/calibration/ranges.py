"""The ranges of the rows that intervals come from: one for each quantity, of rehearsed and of described jobs."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.described_as_counted import step_work
from ..model.intervals import Range
from ..model.training_settings import Training
from .row_reader import PublishedRow

EAGER = "sequences of eager attention"
TOKENS = "tokens of a microbatch"
_UNITS = {
    "model size": "parameters",
    "sequence length": "tokens",
    TOKENS: "tokens",
    "cluster size": "instances",
    "tensor parallelism": "workers",
    "pipeline parallelism": "stages",
    EAGER: "tokens",
    "sharing of all weights (FSDP)": "workers",
}


def counted_ranges(rows: Iterable[PublishedRow]) -> tuple[Range, ...]:
    """The ranges for rehearsed jobs, from the data-parallel rows: parameters, tokens, FLOPs of a step on one core.

    The sequence length is taken from rows with eager attention, whose work grows with its square; if there is no such
    row, from all.
    """
    trained = [row.training for row in rows if row.training.workers == row.training.data_parallel]
    eager = [training for training in trained if training.attention == "eager"] or trained
    return (
        Range.of("model size", "parameters", [training.parameters for training in trained]),
        Range.of("sequence length", "tokens", [float(training.sequence_length) for training in eager]),
        Range.of(
            "work of a step",
            "FLOP a core",
            [sum(step_work(training).flops.values()) for training in trained],
        ),
    )


def described_ranges(rows: Iterable[PublishedRow]) -> tuple[Range, ...]:
    """The ranges for described jobs, from all rows, by the names of `quantities`."""
    found = [quantities(row.training, row.nodes) for row in rows]
    told = {name: [values[name] for values in found] for name in _UNITS}
    told[EAGER].append(1)  # short sequences, which have less attention, count as inside
    return tuple(Range.of(name, unit, told[name]) for name, unit in _UNITS.items())


def quantities(training: Training, instance_count: int) -> dict[str, float]:
    """The quantities of a description on ``instance_count`` instances that are compared with the ranges."""
    return {
        "model size": training.parameters,
        "sequence length": training.sequence_length,
        TOKENS: training.tokens,
        "cluster size": instance_count,
        "tensor parallelism": training.tensor_parallel,
        "pipeline parallelism": training.pipeline_parallel,
        "sharing of all weights (FSDP)": training.data_parallel if training.zero == "full" else 1,
        EAGER: training.sequence_length if training.attention == "eager" else 1,  # flash keeps no scores
    }
