"""The constants are what the published rows give, and their error is stated as it is."""

from __future__ import annotations

import math

import pytest

from windtunnel.priceperf import CALIBRATIONS, published_comparison
from windtunnel.priceperf.calibration import COVERAGE, VERSION_SPREAD, check_range
from windtunnel.priceperf.catalog import Family
from windtunnel.priceperf.fitting import fit, leave_one_out, relative_error
from windtunnel.priceperf.published_rows import A100_ROWS, TRN1_ROWS

FAMILIES: tuple[Family, ...] = ("trn1", "a100")
CENTRE = {"model size": 2e8, "sequence length": 256.0}


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_reproduces_the_constants(family: Family) -> None:
    """No constant without the rows it comes from."""
    calibration = CALIBRATIONS[family]
    fitted = fit(calibration.rows, family)
    assert fitted.compute == pytest.approx(calibration.efficiency.compute, abs=1e-4)
    assert fitted.memory == pytest.approx(calibration.efficiency.memory, abs=1e-4)
    assert fitted.link == pytest.approx(calibration.efficiency.link, abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_leave_one_out_reproduces_the_errors(family: Family) -> None:
    """The error bar is computed, not chosen."""
    calibration = CALIBRATIONS[family]
    assert leave_one_out(calibration.rows, family) == pytest.approx(calibration.errors, abs=2e-4)


@pytest.mark.parametrize(("family", "mean", "largest"), [("trn1", 0.151, 0.27), ("a100", 0.091, 0.20)])
def test_published_rows_lie_within_the_stated_error(family: Family, mean: float, largest: float) -> None:
    """Every row is reproduced within what the report says is the largest error."""
    calibration = CALIBRATIONS[family]
    assert calibration.mean_error < mean
    assert calibration.max_error < largest
    for row in calibration.rows:
        assert abs(relative_error(row, calibration.efficiency)) <= calibration.max_error


@pytest.mark.parametrize("family", FAMILIES)
def test_the_interval_covers_what_it_says(family: Family) -> None:
    """At least 80 % of the left-out rows, and never narrower than the versions' spread."""
    calibration = CALIBRATIONS[family]
    inside = sum(abs(math.log1p(error)) <= calibration.log_fast for error in calibration.errors)
    assert inside / len(calibration.errors) >= COVERAGE
    assert calibration.log_slow >= calibration.log_fast >= math.log1p(VERSION_SPREAD)


def test_the_outside_check_is_the_published_job() -> None:
    """The plain script's ratio is that of the recomputed table, with p4d in fp32."""
    trn1, fp32, _ = published_comparison().checks
    assert CALIBRATIONS["trn1"].outside_check == pytest.approx(trn1.predicted / trn1.published, abs=1e-3)
    assert CALIBRATIONS["a100"].outside_check == pytest.approx(fp32.predicted / fp32.published, abs=1e-3)


def test_every_row_left_out_has_its_reason() -> None:
    """Only parallelism that is not covered, or sizes that nobody rehearses."""
    for row in set(TRN1_ROWS) - set(CALIBRATIONS["trn1"].rows):
        assert row.tensor_parallel > 1
    for row in set(A100_ROWS) - set(CALIBRATIONS["a100"].rows):
        assert row.parameters >= 1e9 or row.sequence_length > 2048


def test_rows_outside_the_fit_are_predicted_and_shown() -> None:
    """The 25 A100 rows that were not chosen are worse than the chosen ones, and nobody hides it."""
    errors = [abs(error) for error in CALIBRATIONS["a100"].left_out_errors]
    assert len(errors) == 25
    assert CALIBRATIONS["a100"].mean_error < sum(errors) / len(errors) < 0.18
    assert max(errors) < 0.39


def test_outside_the_range_the_interval_widens() -> None:
    """Two times outside adds half, four times as much again; the sentence names the range."""
    calibration = CALIBRATIONS["trn1"]
    low = calibration.ranges[2].low
    inside = check_range(calibration, {**CENTRE, "work of a step": low})
    twice = check_range(calibration, {**CENTRE, "work of a step": low / 2})
    four = check_range(calibration, {**CENTRE, "work of a step": low / 4})
    assert inside.inside
    assert inside.log_fast == calibration.log_fast
    assert twice.log_fast == pytest.approx(1.5 * calibration.log_fast)
    assert four.log_fast == pytest.approx(2 * calibration.log_fast)
    assert "calibrated from 1.1 TFLOP a core" in twice.outside[0]


def test_unknown_quantities_are_named() -> None:
    """What the counters do not tell was not checked, and is said so."""
    assert check_range(CALIBRATIONS["a100"], {"model size": None}).unknown == (
        "model size",
        "sequence length",
        "work of a step",
    )
