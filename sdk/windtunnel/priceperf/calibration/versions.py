"""The speed of a Neuron version, relative to the usual one.

`published_versions.csv` has the throughputs that AWS's pages printed for the calibration's configurations, by version.
Single versions differ as much by chance as by progress: predicting with a factor for each version, taken from the
other families of models, was worse than with none. Factors for three eras were better, so these are used: the first
releases, those until 2.19, and from 2.20 on. They come from configurations that were published in two eras. A row that
was published in only one era (as Llama 3.1 in the last) is taken to have that era's speed.
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
"""The first Neuron version of each era."""
_SHRINKAGE = 1
"""Number of imaginary configurations without a difference between eras that are averaged with the real ones."""


class VersionFigure(NamedTuple):
    """One published throughput of one configuration. ``log_ratio``: log of it over the median of all versions."""

    config: str
    model_family: str
    version: tuple[int, int]
    log_ratio: float


def log_speed(version: str, but_family: str | None = None) -> float:
    """Log of a Neuron version's throughput relative to the usual one, by its era.

    Args:
        version: as ``2.21`` or ``2.21.0``.
        but_family: a family of models whose figures are left out.

    Raises:
        InvalidInput: ``version`` is no Neuron version.
    """
    return _speeds(but_family)[_era(parsed_version(version))]


@cache
def log_speed_of_row(config: str, version: str | None) -> float:
    """`log_speed` of the version that a row ran on; without a version, the mean of those behind its median figure.

    That mean is taken from other families of models, so that a row does not predict itself. 0 if nothing is known.
    """
    if version is not None:
        return log_speed(version)
    own = [figure for figure in figures() if figure.config == config]
    return fmean(_speeds(figure.model_family)[_era(figure.version)] for figure in own) if own else 0.0


@cache
def _speeds(but_family: str | None) -> tuple[float, ...]:
    """Log of the relative throughput of each era; the mean over the calibration's configurations is 0."""
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
        KeyError: the file has no such figure.
    """
    printed = {(line["config"], line["neuron_version"]): line["sequences_per_second"] for line in _lines()}
    return float(printed[config, version])


@cache
def _lines() -> list[dict[str, str]]:
    return table("published_versions")


@cache
def figures() -> tuple[VersionFigure, ...]:
    """All figures of `published_versions.csv`."""
    rows = {row.config: row for row in rows_of("trn1")}
    found = []
    for line in _lines():
        row = rows[line["config"]]
        ratio = math.log(float(line["sequences_per_second"]) / (row.published or 1.0))
        found.append(VersionFigure(row.config, row.family, parsed_version(line["neuron_version"]), ratio))
    return tuple(found)


def _era(version: tuple[int, int]) -> int:
    return max(index for index, first in enumerate(_ERAS) if version >= first or not index)
