"""How much faster or slower a Neuron version is than the usual one.

`published_versions.csv` has what AWS's pages printed for the calibration's configurations, version by version.
Single versions differ by chance as much as by progress: a factor for each, predicted from the other families of
models, was farther off than none. Three eras were nearer, so these are told apart: the first releases, those
until 2.19, and from 2.20 on. Only what one configuration reached in two eras tells them apart. So a row that was
published in one era alone, as Llama 3.1 was in the last, counts as that era's.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache
from statistics import fmean
from typing import NamedTuple

from .data_files import table
from .neuron_software import parsed_version
from .published_rows import rows_of

_ERAS = ((2, 0), (2, 6), (2, 20))
"""The first version of each."""
_SHRINKAGE = 1
"""Configurations on which an era is taken to have made no difference, beside those that tell."""


class VersionFigure(NamedTuple):
    """One published throughput of one configuration. ``log_ratio``: to the median of its versions."""

    config: str
    model_family: str
    version: tuple[int, int]
    log_ratio: float


def log_speed(version: str, but_family: str | None = None) -> float:
    """Log of the throughput of a Neuron version's era beside that of the usual one.

    Args:
        version: as ``2.21`` or ``2.21.0``.
        but_family: a family of models whose figures do not count.

    Raises:
        InvalidInput: no version.
    """
    return _speeds(but_family)[_era(parsed_version(version))]


@cache
def log_speed_of_row(config: str, version: str | None) -> float:
    """That of the version that a row ran on; without one, of those that its figure is the median of.

    A row of the calibration does not help to tell what its own versions changed. 0 where nothing is known.
    """
    if version is not None:
        return log_speed(version)
    own = [figure for figure in figures() if figure.config == config]
    return fmean(_speeds(figure.model_family)[_era(figure.version)] for figure in own) if own else 0.0


@cache
def _speeds(but_family: str | None) -> tuple[float, ...]:
    """Log throughput of each era; their mean over the calibration's configurations is 0."""
    found = [figure for figure in figures() if figure.model_family != but_family]
    by_config: defaultdict[str, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for figure in found:
        by_config[figure.config][_era(figure.version)].append(figure.log_ratio)
    speeds = [0.0]
    for era in range(1, len(_ERAS)):
        steps = [
            fmean(eras[era]) - fmean(eras[era - 1])
            for eras in by_config.values()
            if era in eras and era - 1 in eras
        ]
        speeds.append(speeds[-1] + math.fsum(steps) / (len(steps) + _SHRINKAGE))
    usual = fmean(fmean(speeds[_era(figure.version)] for figure in figures() if figure.config == config)
                 for config in {figure.config: None for figure in figures()})  # fmt: skip
    return tuple(speed - usual for speed in speeds)


def published_figure(config: str, version: str) -> float:
    """Sequences per second that AWS printed for a configuration of the calibration and a version, as ``2.9.0``.

    Raises:
        KeyError: the file has none.
    """
    printed = {(line["config"], line["neuron_version"]): line["sequences_per_second"] for line in _lines()}
    return float(printed[config, version])


@cache
def _lines() -> list[dict[str, str]]:
    return table("published_versions")


@cache
def figures() -> tuple[VersionFigure, ...]:
    """All of the file."""
    rows = {row.config: row for row in rows_of("trn1")}
    found = []
    for line in _lines():
        row = rows[line["config"]]
        ratio = math.log(float(line["sequences_per_second"]) / (row.published or 1.0))
        found.append(VersionFigure(row.config, row.family, parsed_version(line["neuron_version"]), ratio))
    return tuple(found)


def _era(version: tuple[int, int]) -> int:
    return max(index for index, first in enumerate(_ERAS) if version >= first or not index)
