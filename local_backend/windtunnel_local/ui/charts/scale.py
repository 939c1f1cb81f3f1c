"""Axes: ticks at round numbers, and the position of a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)
_TIME_STEPS_S = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    3600, 7200, 14400, 21600, 43200, 86400,
)  # fmt: skip
_DAY_S = 86_400
_VALUE_TICKS, _TIME_TICKS = 5, 6
LARGEST = 1e300
"""The largest value that is drawn, so that sums and differences of two stay finite."""
_SMALLEST_SPAN = 1e-9
"""The smallest span of an axis, as a share of its values: below that, floats cannot tell ticks apart."""


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high`` with labelled ticks; ``place`` maps a value into 0 to 1."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    def place(self, value: float) -> float:
        """0 at ``low``, 1 at ``high``."""
        return (value - self.low) / (self.high - self.low)


def value_axis(values: Sequence[float]) -> Axis:
    """An axis between round numbers that holds all ``values`` (at most `LARGEST`); from 0 to 1 if there are none."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    if high - low <= max(largest * _SMALLEST_SPAN, 1 / LARGEST):
        room = largest / 10 if largest > 1 / LARGEST else 1.0
        low, high = low - room, high + room
    step = _round_step((high - low) / _VALUE_TICKS)
    ticks = tuple(number * step for number in range(math.floor(low / step), math.ceil(high / step) + 1))
    return Axis(ticks[0], ticks[-1], ticks, tuple(number(tick, step) for tick in ticks))


def time_axis(end_s: float) -> Axis:
    """An axis of seconds from 0 to ``end_s``, with ticks at round numbers of seconds, minutes, hours or days."""
    end_s = max(end_s, _TIME_STEPS_S[0])
    wanted = end_s / _TIME_TICKS
    found = [step for step in _TIME_STEPS_S if step >= wanted]
    step = found[0] if found else _round_step(wanted / _DAY_S) * _DAY_S
    ticks = tuple(number * step for number in range(math.floor(end_s / step * (1 + 1e-9)) + 1))
    return Axis(0.0, end_s, ticks, tuple(_time(tick, step) for tick in ticks))


def number(value: float, step: float) -> str:
    """A value as text, with as many digits as its axis' step needs: '0.25', '1,500', '2e-05'."""
    if abs(value) < step / 2:
        return "0"
    largest = max(abs(value), step)
    if largest >= 1e6 or step < 1e-4:
        digits = max(0, math.floor(math.log10(abs(value))) - math.floor(math.log10(step)))
        return f"{value:.{min(digits, 15)}e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def _round_step(least: float) -> float:
    """The smallest round number (1, 2 or 5 times a power of ten) that is at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in _STEPS if step * power >= least * (1 - 1e-9)), 10 * power)


def _time(value: float, step: float) -> str:
    if step >= _DAY_S:
        return f"{value / _DAY_S:,.0f} d"
    if step >= 3600 or (step >= 900 and value >= 3600):
        return f"{value / 3600:g} h"
    if step >= 60 or (step >= 15 and value >= 60):
        return f"{value / 60:g} min"
    return f"{value:g} s" if step >= 1 else f"{number(value, step)} s"
