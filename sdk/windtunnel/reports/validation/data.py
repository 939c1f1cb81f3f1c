"""The figures of a validation as plain data: errors in percent, throughputs in sequences per second."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from windtunnel.priceperf import CALIBRATIONS
from windtunnel.priceperf.calibration.accuracy import (
    CalibrationSummary,
    Errors,
    RowCheck,
    SoftwareSummary,
)
from windtunnel.priceperf.calibration.fitting import PRIORS
from windtunnel.priceperf.model.engines import Constants
from windtunnel.priceperf.model.step_time import StepTime
from windtunnel.reports.modelled.data import maybe

_STEP_PARTS = ("memory", "overlapped", "tensor_parallel", "pipeline_transfer", "bubble", "host", "weights_gathered",
               "gradients", "optimizer", "straggling")  # fmt: skip


def row_data(row: RowCheck) -> dict[str, Any]:
    """One row: what was published, what is predicted, and the errors."""
    return {
        "config": row.config,
        "instance_type": row.instance_type.removeprefix("ml."),  # as the tables name it
        "family": row.calibration,
        "kind": row.kind,
        "model_family": row.model_family,
        "published": row.published,
        "published_range": None if row.published_range is None else list(row.published_range),
        "predicted": maybe(row.predicted),
        "error_percent": _in_percent(row.error),
        "leave_one_out_error_percent": _in_percent(row.left_out),
        "leave_one_family_out_error_percent": _in_percent(row.family_left_out),
        "leave_one_source_out_error_percent": _in_percent(row.source_left_out),
        "by_software_error_percent": _in_percent(row.by_software),
        "interval": None if row.low is None else [maybe(row.low), maybe(row.high)],
        "inside_interval": row.inside,
        "in_calibration": row.calibrated,
        "step_seconds": None if row.step is None else _step_data(row.step),
        "outside_range": list(row.outside_range),
        "notes": list(row.notes),
        "reason": row.reason,
    }


def _step_data(step: StepTime) -> dict[str, Any]:
    parts = {"total": step.total_s, "products": step.compute_s}
    for name in _STEP_PARTS:
        parts[name] = getattr(step, f"{name}_s")
    return {name: maybe(seconds) for name, seconds in parts.items()}


def summary_data(summary: CalibrationSummary) -> dict[str, Any]:
    """Errors and coverage of one kind of rows. The coverage of sources is over all rows, ``other_software`` too.

    ``by_software``: rows of other software, predicted with the speed that its other models tell.
    """
    covered: list[dict[str, Any]] = [{}, *_covered(summary)]
    covered += [
        {"groups": other.stacks, "group_coverage_percent": _in_percent(other.coverage)}
        for _, other in _of_software(summary)
    ]
    return {
        **{
            name: {
                "rows": errors.rows,
                "mean_percent": _in_percent(errors.mean),
                "median_percent": _in_percent(errors.median),
                "p90_percent": _in_percent(errors.p90),
                "max_percent": _in_percent(errors.largest),
                **extra,
            }
            for (name, errors), extra in zip(error_parts(summary), covered, strict=True)
        },
        "interval_coverage_percent": _in_percent(summary.coverage[0]),
        "interval_coverage_families_percent": _in_percent(summary.coverage[1]),
        "interval_coverage_sources_percent": _in_percent(summary.coverage[2]),
    }


def scripts_data(errors: Mapping[str, float]) -> dict[str, Any]:
    """Errors on plain scripts that the project measured, with each model left out in turn."""
    return {
        "rows": errors["rows"],
        "models": errors["models"],
        "mean_percent": _in_percent(errors["mean_error"]),
        "median_percent": _in_percent(errors["median_error"]),
        "max_percent": _in_percent(errors["max_error"]),
        "interval_coverage_percent": _in_percent(errors["inside"]),
        "usual_speed": round(math.exp(errors["log_speed"]), 4),
    }


def _covered(summary: CalibrationSummary) -> Iterator[dict[str, Any]]:
    for share, groups, of_group in zip(summary.coverage, summary.groups, summary.group_coverage, strict=True):
        yield {
            "coverage_percent": _in_percent(share),
            "groups": groups,
            "group_coverage_percent": _in_percent(of_group) if groups else None,
        }


def error_parts(summary: CalibrationSummary) -> tuple[tuple[str, Errors], ...]:
    """The errors by name, in the order of the summary table."""
    return (
        ("in_sample", summary.in_sample),
        ("leave_one_out", summary.left_out),
        ("leave_one_family_out", summary.family_left_out),
        ("leave_one_source_out", summary.source_left_out),
        *((name, other.errors) for name, other in _of_software(summary)),
    )


def _of_software(summary: CalibrationSummary) -> Iterator[tuple[str, SoftwareSummary]]:
    for name, found in (("other_software", summary.elsewhere), ("by_software", summary.by_software)):
        if found is not None:
            yield name, found


def constants_data(key: str) -> dict[str, dict[str, Any]]:
    """Each constant of a calibration: its value, its prior, and the rows that it is fitted to."""
    constants, priors = CALIBRATIONS[key].constants, PRIORS[key]
    result = {}
    for field in fields(Constants):
        prior = priors.get(field.name)
        result[field.name] = {
            "value": getattr(constants, field.name),
            "fitted": prior is not None,
            "prior": None if prior is None else prior.value,
            "prior_because": None if prior is None else prior.why,
            "rows": None if prior is None else prior.rows,
        }
    return result


def _in_percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 3)
