"""The accuracy of the inference model: errors of left-out rows, and the intervals that follow from them.

A row is predicted by constants fitted without its model (``alone``: all its batches, instances and versions are left
out, models with other names but the same dimensions stay), and without all models of its dimensions (``family``). A
model whose dimensions are in the rows gets the interval of the first, any other that of the second. All rows are from
one source. Every figure of every Neuron version counts, so the interval includes the spread of versions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean
from typing import Literal, get_args

from ..errors import NotCalibrated
from ..instances import CATALOG, InstanceType
from ..model.inference_call import Inference, InferenceConstants
from ..model.intervals import Range, RangeCheck, check_ranges, group_quantile
from .accuracy import Errors
from .inference_fitting import predicted
from .inference_rows import InferenceRow, Use, inference_rows
from .left_out import fitted

Level = Literal["alone", "family"]
LEVELS: tuple[Level, ...] = get_args(Level)
Figure = Literal["throughput", "latency_p50"]
FIGURES: tuple[Figure, ...] = get_args(Figure)


def group_of(row: InferenceRow, level: Level) -> str:
    """The group of rows with which a row is left out."""
    return {"alone": row.model, "family": row.architecture}[level]


def constants() -> InferenceConstants:
    """The constants fitted to all rows."""
    return InferenceConstants(**fitted()["inference"]["constants"])


@cache
def width(level: Level, figure: Figure, but: str | None = None) -> float:
    """Log half-width of an 80 % interval. ``but``: a group that is left out."""
    scores = _errors(level, figure)
    return group_quantile([[abs(math.log1p(error)) for error in errors]
                           for group, errors in scores.items() if group != but])  # fmt: skip


def check_calibrated(instance: InstanceType) -> None:
    """Check that published rows are of the instance's chip.

    Raises:
        NotCalibrated: none is.
    """
    chips = {row.instance.accelerator.name for row in inference_rows()}
    if instance.accelerator.name not in chips:
        known = ", ".join(name for name, entry in CATALOG.items() if entry.accelerator.name in chips)
        raise NotCalibrated(
            f"Inference on {instance.name} is not calibrated: no published throughput of "
            f"{instance.accelerator.name} is among the rows. Calibrated are {known}."
        )


def interval(inference: Inference, instance: InstanceType, figure: Figure) -> RangeCheck:
    """The interval of a modelled figure, wider outside the range of the rows.

    Raises:
        NotCalibrated: no row is of the instance's chip.
    """
    check_calibrated(instance)
    log_width = width(level_of(inference), figure)
    return check_ranges(_ranges(), _quantities(inference, instance), log_width, log_width)


def level_of(inference: Inference) -> Level:
    """The level of left-out rows whose interval it gets."""
    known = {_dimensions(row.inference) for row in inference_rows()}
    return "alone" if _dimensions(inference) in known else "family"


@dataclass(frozen=True)
class InferenceSummary:
    """Errors of one figure at one level. ``groups``: number of groups; ``coverage``: part of the rows inside.

    ``level`` ``in_sample``: by the shipped constants, without a coverage; ``unseen``: rows that were set aside.
    """

    figure: Figure
    level: Literal["in_sample", "alone", "family", "unseen"]
    errors: Errors
    groups: int
    coverage: float | None


def summaries() -> tuple[InferenceSummary, ...]:
    """The summaries of throughput and P50: in sample, left out at both levels, and of rows that were set aside."""
    found = []
    for figure in FIGURES:
        found.append(InferenceSummary(figure, "in_sample", Errors.of(_all_errors("fit", figure)), 0, None))
        found += [_left_out(level, figure) for level in LEVELS]
        found.append(_unseen(figure))
    return tuple(found)


def _left_out(level: Level, figure: Figure) -> InferenceSummary:
    by_group = _errors(level, figure)
    inside = [
        abs(math.log1p(error)) <= width(level, figure, but=group)
        for group, errors in by_group.items()
        for error in errors
    ]
    every = [error for errors in by_group.values() for error in errors]
    return InferenceSummary(figure, level, Errors.of(every), len(by_group), mean(inside))


def _unseen(figure: Figure) -> InferenceSummary:
    rows, errors = inference_rows("test"), _all_errors("test", figure)
    inside = [
        abs(math.log1p(error)) <= width(level_of(row.inference), figure)
        for row, error in zip(rows, errors, strict=True)
    ]
    return InferenceSummary(
        figure, "unseen", Errors.of(errors), len({row.model for row in rows}), mean(inside)
    )


def _all_errors(use: Use, figure: Figure) -> list[float]:
    shipped = constants()
    return [_error(row, shipped, figure) for row in inference_rows(use)]


@cache
def _errors(level: Level, figure: Figure) -> Mapping[str, Sequence[float]]:
    """By group, the relative errors of its rows, predicted by constants fitted without the group."""
    without = {
        name: InferenceConstants(**values) for name, values in fitted()["inference"]["without"][level].items()
    }
    found: defaultdict[str, list[float]] = defaultdict(list)
    for row in inference_rows():
        group = group_of(row, level)
        found[group].append(_error(row, without[group], figure))
    return found


def _error(row: InferenceRow, fitted_to: InferenceConstants, figure: Figure) -> float:
    said = predicted(row, fitted_to)
    if figure == "throughput":
        return said.throughput_per_s / row.throughput_per_s - 1
    return said.latency_p50_s * 1e3 / row.latency_p50_ms - 1


def _dimensions(inference: Inference) -> tuple[int, int, int, int]:
    model = inference.architecture
    return model.layers, model.hidden_size, model.attention_heads, model.ffn_hidden_size


@cache
def _ranges() -> tuple[Range, ...]:
    values = [_quantities(row.inference, row.instance) for row in inference_rows()]
    units = {
        "model size": "weights",
        "sequence length": "tokens",
        "batch size": "sequences",
        "cores": "cores",
    }
    return tuple(Range.of(name, unit, [each[name] for each in values]) for name, unit in units.items())


def _quantities(inference: Inference, instance: InstanceType) -> dict[str, float]:
    model = inference.architecture
    return {
        "model size": model.layers * model.layer_weights,
        "sequence length": inference.sequence_length,
        "batch size": inference.batch_size,
        "cores": instance.core_count,
    }
