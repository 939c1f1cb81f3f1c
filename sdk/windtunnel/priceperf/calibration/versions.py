"""How much faster or slower a Neuron version is than the median of all.

`published_versions.csv` has what AWS's pages printed for the calibration's configurations, version by version.
Single versions differ by chance as much as by progress: a factor for each, predicted from the other families of
models, was farther off than none. Three eras were nearer, so these are told apart: the first releases, those
until 2.19, and from 2.20 on.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from functools import cache
from importlib.resources import files
from statistics import mean
from typing import NamedTuple

from ..errors import InvalidInput
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
    """Log of the throughput of a Neuron version's era beside the median over versions.

    Args:
        version: as ``2.21`` or ``2.21.0``.
        but_family: a family of models whose figures do not count.

    Raises:
        InvalidInput: no version.
    """
    era = _era(parsed(version))
    by_config: defaultdict[str, list[float]] = defaultdict(list)
    for figure in figures():
        if _era(figure.version) == era and figure.model_family != but_family:
            by_config[figure.config].append(figure.log_ratio)
    means = [mean(ratios) for ratios in by_config.values()]
    return math.fsum(means) / (len(means) + _SHRINKAGE)


def parsed(version: str) -> tuple[int, int]:
    """Its first two numbers.

    Raises:
        InvalidInput: it has none.
    """
    parts = version.lower().removeprefix("neuron").strip().lstrip("v").split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise InvalidInput(f"neuron_version must be a number as 2.21 or 2.21.0, not {version!r}")
    return int(parts[0]), int(parts[1])


@cache
def figures() -> tuple[VersionFigure, ...]:
    """All of the file."""
    rows = {row.config: row for row in rows_of("trn1")}
    text = files(__package__).joinpath("published_versions.csv").read_text(encoding="utf-8")
    found = []
    for line in csv.DictReader(text.splitlines()):
        row = rows[line["config"]]
        ratio = math.log(float(line["sequences_per_second"]) / (row.published or 1.0))
        found.append(VersionFigure(row.config, row.family, parsed(line["neuron_version"]), ratio))
    return tuple(found)


def _era(version: tuple[int, int]) -> int:
    return max(index for index, first in enumerate(_ERAS) if version >= first or not index)
