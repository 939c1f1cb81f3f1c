"""A user's own calibration, and the corrections that follow from it, for `windtunnel calibrate`."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from windtunnel.priceperf import Correction
from windtunnel.user_calibration import UserCalibration


def lines(calibration: UserCalibration, path: Path) -> list[str]:
    """A line for each job, then one for each correction. ``path``: the file in which the calibration is kept."""
    if not calibration.evidence:
        return [f"No calibration of your own ({path})."]
    outdated = {item.job for item in calibration.outdated}
    found = []
    for item in calibration.evidence:
        unused = "; NOT USED: held against another version of the model" if item.job in outdated else ""
        found.append(
            f"{item.job}: {item.on}, {item.instance_type} x {item.instance_count}, steps and evaluation "
            f"{item.real_s:,.0f} s, modelled {item.modelled_s:,.0f} s: x {item.ratio:.2f}{unused}"
        )
    for correction in calibration.corrections.values():
        low, high = _ends(correction)
        found.append(
            f"{correction.calibration.key}: step times x {correction.factor:.2f} from {len(correction.jobs)} "
            f"job{'s' if len(correction.jobs) > 1 else ''}; 80 % interval of the next job x {low:.2f} to x {high:.2f}"
        )
    return found


def data(calibration: UserCalibration) -> dict[str, Any]:
    """The same as data for JSON."""
    return {
        "jobs": [
            {
                **asdict(item),
                "on": item.on.isoformat(),
                "ratio": item.ratio,
                "used": item not in calibration.outdated,
            }
            for item in calibration.evidence
        ],
        "corrections": [
            {
                "family": correction.calibration.key,
                "factor": correction.factor,
                "interval": list(_ends(correction)),
                "jobs": list(correction.jobs),
            }
            for correction in calibration.corrections.values()
        ],
    }


def _ends(correction: Correction) -> tuple[float, float]:
    width = math.exp(correction.log_half_width)
    return correction.factor / width, correction.factor * width
