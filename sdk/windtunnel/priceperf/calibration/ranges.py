"""Where the rows lie that the intervals come from: one range a quantity, of rehearsed jobs and of descriptions."""

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
    """Of the data-parallel rows: parameters, tokens, FLOPs a step and core.

    The sequence length is that of eager attention, whose work grows with its square; of all where none is eager.
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
    """Of all rows, by the names of `quantities`."""
    found = [quantities(row.training, row.nodes) for row in rows]
    told = {name: [values[name] for values in found] for name in _UNITS}
    told[EAGER].append(1)  # a shorter sequence has less of it
    return tuple(Range.of(name, unit, told[name]) for name, unit in _UNITS.items())


def quantities(training: Training, instance_count: int) -> dict[str, float]:
    """Of a description on so many instances."""
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
