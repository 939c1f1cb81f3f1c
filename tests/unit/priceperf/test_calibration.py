"""The constants are what the published rows give, and their error is stated as it is."""

from __future__ import annotations

import math
import random
from dataclasses import astuple, fields
from statistics import mean

import pytest
from scripts import fit_calibrations

from windtunnel.priceperf import CALIBRATIONS
from windtunnel.priceperf.calibration import fitting, left_out
from windtunnel.priceperf.calibration.accuracy import validate_built_in
from windtunnel.priceperf.calibration.calibrations import check_range
from windtunnel.priceperf.calibration.data_files import table
from windtunnel.priceperf.calibration.fitting import (
    ASSUMED,
    PRIORS,
    fit,
)
from windtunnel.priceperf.calibration.left_out import LEVELS, fitted, group_of
from windtunnel.priceperf.calibration.published_rows import elsewhere, measured, rows_of
from windtunnel.priceperf.calibration.ranges import counted_ranges, described_ranges
from windtunnel.priceperf.model.intervals import COVERAGE, Range, check_ranges, group_quantile
from windtunnel.priceperf.published.bert_jobs_predicted import predictions, without_tracing

FAMILIES = ("trn1", "a100", "h100")
CENTRE = {"model size": 3e8, "sequence length": 256.0}


def test_the_constants_are_in_step_with_rows_and_priors() -> None:
    """After a change of published_fitted.csv or of the priors: python scripts/fit_calibrations.py."""
    assert fitted()["inputs"] == fit_calibrations.inputs()


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_reproduces_the_constants(family: str) -> None:
    """No constant without the rows it comes from. The fit has one answer: where the search starts does not matter."""
    calibration = CALIBRATIONS[family]
    rows = calibration.rows
    found = fit(rows, family)
    assert astuple(found) == pytest.approx(astuple(calibration.constants), rel=1e-3)
    again = fit(rows, family, fit(rows[: len(rows) // 2], family))
    assert astuple(again) == pytest.approx(astuple(found), rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_only_what_has_a_prior_is_fitted(family: str) -> None:
    """An assumption stays what it was assumed to be."""
    shipped, assumed = CALIBRATIONS[family].constants, ASSUMED[family]
    assert {*assumed, *PRIORS[family]} == {field.name for field in fields(shipped)}
    for name, value in assumed.items():
        assert name not in PRIORS[family]
        assert getattr(shipped, name) == value


def test_leaving_out_reproduces_the_errors() -> None:
    """The errors are computed, not chosen: trn1's, at each level, those of software that set no constant, too."""
    rows, entry = CALIBRATIONS["trn1"].rows, fitted()["calibrations"]["trn1"]
    for position, level in enumerate(LEVELS):
        error = fitting.error_without(
            rows,
            "trn1",
            lambda row, level=level: group_of(row, level),  # type: ignore[misc]
            CALIBRATIONS["trn1"].constants,
        )
        for its, errors in ((rows, entry["errors"]), (elsewhere("trn1"), entry["elsewhere"])):
            found = [error(row) for row in its]
            assert found == pytest.approx([errors[row.config][position] for row in its], abs=2e-4)


def test_software_that_set_no_constant_is_a_stranger_to_them() -> None:
    """The rows are others than those of the fit, each says where it is from, and all of them are judged."""
    for key, calibration in CALIBRATIONS.items():
        others = elsewhere(key)
        assert {row.config for row in others}.isdisjoint(row.config for row in calibration.rows)
        assert all(row.published and row.stack and row.source for row in others)
        assert sum(map(len, calibration.elsewhere_errors.values())) == len(others)
    assert sum(len(elsewhere(key)) for key in CALIBRATIONS) == len(table("published_other_software"))


def test_the_model_is_as_near_as_promised() -> None:
    """Mean errors of rows left out with their near-twins, with their family of models, with their source."""
    promised = {
        "trn1": (0.08, 0.08, 0.08),
        "a100": (0.06, 0.07, 0.07),
        "a100_cluster": (0.08, 0.10, 0.10),
        "h100": (0.08, 0.08, 0.08),
    }
    summaries = validate_built_in().summaries
    assert {summary.kind for summary in summaries} == promised.keys()
    for summary in summaries:
        alone, family, source = promised[summary.kind]
        assert summary.left_out.mean <= alone
        assert summary.family_left_out.mean <= family
        assert summary.source_left_out.mean <= source


def test_intervals_cover_what_they_say() -> None:
    """75 to 90 % of a left-out group's rows at each level, each held against an interval that other groups have set.

    So do the rows of each kind, up to 95 % where that is one row more or two.
    """
    validation = validate_built_in()
    for position in range(len(LEVELS)):
        part = ("left_out", "family_left_out", "source_left_out")[position]
        groups: dict[object, list[bool]] = {}
        for row in (*validation.rows, *validation.elsewhere):
            if getattr(row, part) is not None:
                groups.setdefault((row.kind, row.groups[position]), []).append(row.covered[position])
        assert 0.75 <= mean(map(mean, groups.values())) <= 0.90
    for summary in validation.summaries:
        assert all(0.75 <= part <= 0.95 for part in summary.coverage)
        assert 0.75 <= summary.group_coverage[-1] <= 0.96  # trn1 has six sources


@pytest.mark.parametrize("level", LEVELS)
def test_a_row_takes_no_part_in_the_width_that_judges_it(
    level: left_out.Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However wrong the rows of a group are, the width that they are held against stays."""
    row = CALIBRATIONS["a100"].rows[-1]
    group, its = group_of(row, level), left_out.kind_of(row)
    before = left_out.width(level, its, group)
    scores = {
        key: [100.0] * len(values) if key[1] == group else values
        for key, values in left_out._scores(level, group.name if level == "source" else "").items()
    }
    left_out.measured_width.cache_clear()
    monkeypatch.setattr(left_out, "_scores", lambda *_: scores)
    assert left_out.width(level, its, group) == before
    assert left_out.measured_width(level, its, None) > left_out.width(level, its)
    left_out.measured_width.cache_clear()


def test_widths_and_ranges_are_those_of_the_rows() -> None:
    """What the file holds of them is what the rows say."""
    for level, by_kind in fitted()["widths"].items():
        for kind, found in by_kind.items():
            if level in ("script", "rehearsed"):
                continue  # see test_plain_script
            assert found == pytest.approx(left_out.measured_width(level, kind, None), abs=1e-6)
    for kind, speed in fitted()["strangers"].items():
        assert speed == pytest.approx(left_out.log_speed_of_stranger(kind), abs=1e-4)
    for key, calibration in CALIBRATIONS.items():
        rows = (*calibration.rows, *elsewhere(key))
        own = [row for row in measured() if row.calibration == key]
        assert calibration.ranges == counted_ranges((*rows, *own))
        assert calibration.script_ranges == described_ranges((*rows, *own))
        assert calibration.described_ranges == described_ranges(rows)


def covered(spread: float, widths_from: float, groups: int = 40, each: int = 6) -> float:
    """Part of synthetic rows inside intervals: errors of a known spread, half of it common to a group.

    ``widths_from``: the spread of the errors that set the widths.
    """
    draw = random.Random(1)  # noqa: S311 - the same numbers each time

    def drawn(sd: float) -> list[list[float]]:
        means = [draw.gauss(0, sd * math.sqrt(0.5)) for _ in range(groups)]
        return [[abs(draw.gauss(mean, sd * math.sqrt(0.5))) for _ in range(each)] for mean in means]

    tested, setting = drawn(spread), drawn(widths_from)
    inside = 0
    for index, group in enumerate(tested):
        width = group_quantile([*setting[:index], *setting[index + 1 :]])
        inside += sum(score <= width for score in group)
    return inside / (groups * each)


def test_intervals_too_narrow_would_be_found() -> None:
    """A synthetic model: widths from its own kind of errors hold, from errors half or twice as large they don't."""
    assert 0.75 <= covered(0.1, 0.1) <= 0.90
    assert covered(0.1, 0.05) < 0.70
    assert covered(0.1, 0.2) > 0.95


def test_few_groups_make_the_widest_interval() -> None:
    """From three groups no 80 % quantile of a fourth can be told: the largest score stands."""
    assert group_quantile([[0.1, 0.1], [0.2], [0.9, 0.1]]) == 0.9
    assert group_quantile([[0.1]] * 99 + [[0.9]]) == 0.1
    assert group_quantile([]) == 0.0


@pytest.mark.parametrize("family", ["trn1", "a100"])
def test_the_interval_of_counts_covers_what_it_says(family: str) -> None:
    """At least 80 % of the rows predicted from counts, and never narrower than that of left-out sources."""
    calibration = CALIBRATIONS[family]
    errors = calibration.counts_errors
    assert 0.03 < sum(map(abs, errors)) / len(errors) < 0.12
    inside = sum(abs(math.log1p(error)) <= calibration.log_fast for error in errors)
    assert inside / len(errors) >= COVERAGE
    assert calibration.log_slow >= calibration.log_fast >= left_out.width("source", family)


def test_the_outside_check_is_the_published_job() -> None:
    """The plain script's ratio is that of the rehearsed prediction, p4d in fp32, with and without tracing."""
    traced, bare = predictions(), without_tracing()
    trn1, a100 = CALIBRATIONS["trn1"], CALIBRATIONS["a100"]
    assert trn1.outside_check == pytest.approx(1 + bare.trn1.iterations_error, abs=1e-3)
    assert trn1.traced_check == pytest.approx(1 + traced.trn1.iterations_error, abs=1e-3)
    assert a100.outside_check == pytest.approx(1 + traced.p4d.iterations_error, abs=1e-3)
    assert a100.traced_check == a100.outside_check


def test_every_published_row_is_in() -> None:
    """None left out, each with a source and the software that trained it."""
    for family, rows in (("trn1", 18), ("a100", 86), ("h100", 64)):
        assert CALIBRATIONS[family].rows == rows_of(family)
        assert len(rows_of(family)) == rows
        assert all(row.source and row.stack and row.published for row in rows_of(family))


def test_counts_rows_are_like_a_rehearsal() -> None:
    """Data-parallel and eager: BERT and ViT on trn1, BERT on the A100, none on the H100."""
    assert [len(CALIBRATIONS[family].counts_rows) for family in FAMILIES] == [10, 13, 0]


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
    assert "calibrated from 1.1 to 20.9 TFLOP a core" in twice.outside[0]


def test_what_lies_farthest_outside_comes_first() -> None:
    """It decides how much wider the interval is."""
    ranges = [Range(name, "parameters", 10, 20) for name in ("near", "inside", "far", "nearer")]
    check = check_ranges(ranges, {"near": 40, "inside": 15, "far": 1, "nearer": 30}, 0.1, 0.1)
    assert [reason.split()[0] for reason in check.outside] == ["far", "near", "nearer"]


def test_unknown_quantities_are_named() -> None:
    """What the counters do not tell was not checked, and is said so."""
    assert check_range(CALIBRATIONS["a100"], {"model size": None}).unknown == (
        "model size",
        "sequence length",
        "work of a step",
    )


def test_large_values_have_a_prefix_and_no_exponent() -> None:
    """Rounding to three digits may reach the next prefix."""
    assert (
        Range("model size", "parameters", 999_600_000, 2e12).words == "from 1 G parameters to 2 T parameters"
    )
    work = Range("work of a step", "FLOP a core", 2.15e12, 1.3e18)
    assert work.words == "from 2.15 TFLOP a core to 1.3 EFLOP a core"


def test_a_range_of_one_value_is_told_as_one() -> None:
    """Not "from 1 instances to 1 instances"."""
    one = Range("cluster size", "instances", 1, 1)
    assert check_ranges([one], {"cluster size": 4}, 0.1, 0.1).outside == (
        "cluster size 4 instances, calibrated at 1 instance only",
    )
