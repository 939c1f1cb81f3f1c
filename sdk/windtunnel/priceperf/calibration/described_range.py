"""The interval around the prediction of a description, and how far it lies outside the range of published rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from ..instances import InstanceType
from ..model.intervals import Range, RangeCheck, check_ranges
from ..model.training_settings import Training
from .calibrations import Calibration
from .left_out import Group, Level, fitted, kind_of_run, width
from .ranges import TOKENS, described_ranges, quantities


def widenings() -> dict[str, float]:
    """The log width that an interval gets in addition, by what is not known of a job; `widening` measures it."""
    found: dict[str, float] = fitted()["widenings"]
    return found


def description_check(
    calibration: Calibration,
    training: Training,
    instance: InstanceType,
    instance_count: int,
    *,
    level: Level,
    but: Group | None = None,
    lacks: Sequence[str],
) -> RangeCheck:
    """Compare a description with the range of rows that its interval comes from.

    Args:
        calibration: of the instance.
        training: the description.
        instance: on which it runs.
        instance_count: number of instances.
        level: which left-out rows the job is like, see `left_out`.
        but: a group of rows that is left out of the width.
        lacks: what had to be assumed, by the names of `widenings`.
    """
    base = width(level, kind_of_run(calibration.key, instance_count), but)
    extra = [*lacks]
    if instance.from_specification:
        extra.append("specification")
    if training.lora:
        extra.append("lora")
    # dict.fromkeys keeps the order (a set does not), so that the sum's last digit is the same in every process.
    log_width = math.hypot(base, *[widenings()[name] for name in dict.fromkeys(extra)])
    values = quantities(training, instance_count)
    check = check_ranges(_ranges(calibration, level), values, log_width, log_width)
    return check if level in ("source", "script") else check._replace(by_known_software=True)


@cache
def most_tokens(calibration: Calibration) -> float:
    """The most tokens that a row has in a microbatch; with more, an interval widens."""
    return next(item.high for item in _ranges(calibration, "source") if item.quantity == TOKENS)


@cache
def _ranges(calibration: Calibration, level: Level) -> tuple[Range, ...]:
    if level == "script":
        return calibration.script_ranges
    of_all = level in ("source", "software")
    return calibration.described_ranges if of_all else described_ranges(calibration.rows)
