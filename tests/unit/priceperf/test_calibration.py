"""The constants are what the published rows give, and their error is stated as it is."""

from __future__ import annotations

import math
from dataclasses import astuple

import pytest
from scripts import fit_calibrations

from windtunnel.priceperf import CALIBRATIONS
from windtunnel.priceperf.calibration.calibrations import VERSION_SPREAD, check_range, fitted
from windtunnel.priceperf.calibration.fitting import (
    ASSUMED,
    PRIORS,
    fit,
    leave_one_family_out,
    leave_one_out,
    relative_error,
)
from windtunnel.priceperf.calibration.published_rows import rows_of
from windtunnel.priceperf.model.intervals import COVERAGE, Range, check_ranges, half_width, measured_coverage
from windtunnel.priceperf.published.bert_jobs_predicted import predictions, without_recording

FAMILIES = ("trn1", "a100")
CENTRE = {"model size": 3e8, "sequence length": 256.0}


def test_the_constants_are_in_step_with_rows_and_priors() -> None:
    """After a change of published_rows.csv or of the priors: python scripts/fit_calibrations.py."""
    assert fitted()["inputs"] == fit_calibrations.inputs()


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_reproduces_the_constants(family: str) -> None:
    """No constant without the rows it comes from."""
    calibration = CALIBRATIONS[family]
    fitted = fit(calibration.rows, family)
    assert astuple(fitted) == pytest.approx(astuple(calibration.constants), rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_only_what_has_a_prior_is_fitted(family: str) -> None:
    """An assumption stays what it was assumed to be."""
    shipped, assumed = CALIBRATIONS[family].constants, ASSUMED[family]
    for name in type(assumed).__dataclass_fields__:
        if name in PRIORS[family]:
            assert getattr(assumed, name) == PRIORS[family][name].value
        else:
            assert getattr(shipped, name) == getattr(assumed, name)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_start_of_the_search_does_not_matter(family: str) -> None:
    """The fit has one answer."""
    rows = CALIBRATIONS[family].rows
    again = fit(rows, family, fit(rows[: len(rows) // 2], family))
    assert astuple(again) == pytest.approx(astuple(fit(rows, family)), rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_leaving_out_reproduces_the_errors(family: str) -> None:
    """The error bars are computed, not chosen."""
    calibration = CALIBRATIONS[family]
    assert leave_one_out(calibration.rows, family) == pytest.approx(calibration.errors, abs=2e-4)
    assert leave_one_family_out(calibration.rows, family) == pytest.approx(
        calibration.family_errors, abs=2e-4
    )


@pytest.mark.parametrize(
    ("family", "mean", "median", "largest", "family_mean"),
    [("trn1", 0.08, 0.06, 0.20, 0.20), ("a100", 0.06, 0.06, 0.15, 0.20)],
)
def test_the_model_is_as_near_as_promised(
    family: str, mean: float, median: float, largest: float, family_mean: float
) -> None:
    """Left out, trn1's rows are within 8 % on average and 20 % at most, the A100's within 6 and 15 %."""
    calibration = CALIBRATIONS[family]
    assert calibration.mean_error <= mean
    assert calibration.median_error <= median
    assert calibration.max_error <= largest
    assert sum(map(abs, calibration.family_errors)) / len(calibration.family_errors) <= family_mean


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_what_they_say(family: str) -> None:
    """75 to 90 % of the left-out rows and families, each held against the interval of the others."""
    calibration = CALIBRATIONS[family]
    for errors in (calibration.errors, calibration.family_errors):
        assert 0.75 <= measured_coverage(errors) <= 0.90
        inside = sum(abs(math.log1p(error)) <= half_width(errors) for error in errors)
        assert inside / len(errors) >= COVERAGE


@pytest.mark.parametrize("family", FAMILIES)
def test_the_interval_of_counts_covers_what_it_says(family: str) -> None:
    """At least 80 % of the rows predicted from counts, never narrower than the versions' spread."""
    calibration = CALIBRATIONS[family]
    errors = calibration.counts_errors
    assert 0.05 < sum(map(abs, errors)) / len(errors) < 0.12
    inside = sum(abs(math.log1p(error)) <= calibration.log_fast for error in errors)
    assert inside / len(errors) >= COVERAGE
    assert calibration.log_slow >= calibration.log_fast >= math.log1p(VERSION_SPREAD)


def test_the_outside_check_is_the_published_job() -> None:
    """The plain script's ratio is that of the rehearsed prediction, p4d in fp32, with and without recording."""
    recorded, bare = predictions(), without_recording()
    trn1, a100 = CALIBRATIONS["trn1"], CALIBRATIONS["a100"]
    assert trn1.outside_check == pytest.approx(1 + bare.trn1.iterations_error, abs=1e-3)
    assert trn1.recorded_check == pytest.approx(1 + recorded.trn1.iterations_error, abs=1e-3)
    assert a100.outside_check == pytest.approx(1 + recorded.p4d.iterations_error, abs=1e-3)
    assert a100.recorded_check == a100.outside_check


def test_every_published_row_is_in() -> None:
    """18 of trn1 and 40 of the A100: none left out, each with a source."""
    assert (len(rows_of("trn1")), len(rows_of("a100"))) == (18, 40)
    assert CALIBRATIONS["trn1"].rows == rows_of("trn1")
    assert CALIBRATIONS["a100"].rows == rows_of("a100")
    assert all(row.source and row.published for row in (*rows_of("trn1"), *rows_of("a100")))


def test_no_row_is_far_off_in_sample() -> None:
    """Every row is reproduced within what the report says is the largest error."""
    for calibration in CALIBRATIONS.values():
        for row in calibration.rows:
            assert abs(relative_error(row, calibration.constants)) <= calibration.max_error


def test_counts_rows_are_like_a_rehearsal() -> None:
    """Data-parallel and eager: BERT and ViT on trn1, BERT on the A100."""
    assert len(CALIBRATIONS["trn1"].counts_rows) == 10
    assert len(CALIBRATIONS["a100"].counts_rows) == 6


def test_outside_the_range_the_interval_widens() -> None:
    """Two times outside adds half, four times as much again; the sentence names the range."""
    calibration = CALIBRATIONS["trn1"]
    low = calibration.ranges[2].low
    centre = {**CENTRE, "model size": calibration.ranges[0].high}
    inside = check_range(calibration, {**centre, "work of a step": low})
    twice = check_range(calibration, {**centre, "work of a step": low / 2})
    four = check_range(calibration, {**centre, "work of a step": low / 4})
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


def test_a_range_of_one_value_is_told_as_one() -> None:
    """Not "from 1 instances to 1 instances"."""
    one = Range("cluster size", "instances", 1, 1)
    assert check_ranges([one], {"cluster size": 4}, 0.1, 0.1).outside == (
        "cluster size 4 instances, calibrated at 1 instance only",
    )
