"""What a chart must not be read without."""

from __future__ import annotations

from collections.abc import Iterable

from windtunnel.priceperf import Estimate
from windtunnel.reports.comparison.sections import label


def caveats(estimates: Iterable[Estimate]) -> tuple[str, ...]:
    """Sentences: whose steps a user's calibration changes, who is outside the calibrated range, what cannot run."""
    items = tuple(estimates)
    found = (
        ("YOUR CALIBRATION changes the steps", [label(item) for item in items if item.correction]),
        (
            "Outside the calibrated range, interval widened",
            [label(item) for item in items if item.range_check.outside],
        ),
        (
            "Does not fit the memory as described",
            [label(item) for item in items if item.memory is not None and not item.memory.fits],
        ),
    )
    return tuple(f"{what}: {', '.join(dict.fromkeys(names))}." for what, names in found if names)
