"""How much wider an interval gets for what is not known of a job, measured from published rows.

Each widening is a conformal quantile, in logs: of the change that the lack alone makes to predictions, or of the errors
of rows with that lack. It is added in quadrature to the width of the left-out rows (`described_range`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from statistics import fmean

from ..model.engines import Constants
from ..model.intervals import group_quantile
from .data_files import table
from .fitting import relative_error, step_s
from .published_rows import adapted, elsewhere, rows_of
from .row_reader import read_rows
from .versions import figures, log_speed, log_speed_of_row

_OF_GPUS = {"a100": "h100", "h100": "a100"}


def measured(constants: Mapping[str, Constants]) -> dict[str, float]:
    """All widenings by name, computed with the fitted constants of each calibration."""
    return {
        "recompute": _quantile(_unstated("recompute", constants)),
        "attention": _quantile(_unstated("attention", constants)),
        "network": _quantile(_other_network(constants)),
        "neuron_version": _quantile(_versions()),
        "specification": _quantile(_other_accelerator(constants)),
        "lora": _quantile(_adapters(constants)),
    }


def _unstated(column: str, constants: Mapping[str, Constants]) -> Iterable[tuple[Hashable, float]]:
    """The change of predictions if a column is emptied in rows that state it."""
    stated = [line for line in table("published_fitted") if line[column]]
    for whole, lacking in zip(
        read_rows(stated), read_rows([{**line, column: ""} for line in stated]), strict=True
    ):
        if whole.row is not None and lacking.row is not None:
            fitted = constants[whole.row.calibration]
            yield whole.row.stack, math.log(step_s(lacking.row, fitted) / step_s(whole.row, fitted))


def _other_network(constants: Mapping[str, Constants]) -> Iterable[tuple[Hashable, float]]:
    """The change of predictions of rows with several nodes on half of their network: it is known no better."""
    for key, fitted in constants.items():
        for row in rows_of(key):
            if row.nodes > 1:
                slower = replace(row, network_gbps=row.instance.network.value / 2)
                yield (key, row.stack), math.log(step_s(slower, fitted) / step_s(row, fitted))


def _versions() -> Iterable[tuple[Hashable, float]]:
    """Distance of single Neuron versions from their configuration's median, without the effect of their eras, which is
    taken from other families of models.
    """
    for figure in figures():
        era = log_speed(".".join(map(str, figure.version)), but_family=figure.model_family)
        yield figure.config, figure.log_ratio - (era - log_speed_of_row(figure.config, None))


def _other_accelerator(constants: Mapping[str, Constants]) -> Iterable[tuple[Hashable, float]]:
    """Errors of one GPU's rows if predicted by the constants of another GPU."""
    for key, other in _OF_GPUS.items():
        for row in rows_of(key):
            yield (key, row.stack), math.log1p(relative_error(row, constants[other]))


def _adapters(constants: Mapping[str, Constants]) -> Iterable[tuple[Hashable, float]]:
    """Difference between the errors of rows that train adapters and those of the same software with all weights."""
    for row in adapted():
        fitted = constants[row.calibration]
        alike = [each for each in elsewhere(row.calibration) if each.stack == row.stack]
        if alike:
            usual = fmean(math.log1p(relative_error(each, fitted)) for each in alike)
            yield (row.stack, row.training.architecture), math.log1p(relative_error(row, fitted)) - usual


def _quantile(scores: Iterable[tuple[Hashable, float]]) -> float:
    groups: defaultdict[Hashable, list[float]] = defaultdict(list)
    for name, score in scores:
        groups[name].append(abs(score))
    return group_quantile(list(groups.values()))
