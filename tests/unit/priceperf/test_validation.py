"""Rows that the model never saw: predicted by the same constants, with errors, intervals and reasons."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from statistics import mean

import pytest

from windtunnel.priceperf import CALIBRATIONS, CATALOG
from windtunnel.priceperf.calibration.accuracy import Errors, validate_built_in, validate_rows
from windtunnel.priceperf.calibration.fitting import relative_error
from windtunnel.priceperf.calibration.published_rows import elsewhere, rows_of
from windtunnel.priceperf.calibration.row_reader import read_rows

from .test_row_reader import LLAMA, cells


def test_the_built_in_rows_give_the_stated_errors() -> None:
    """Every row is there, its left-out errors are those of the calibration, coverage is as measured."""
    validation = validate_built_in()
    assert [row.config for row in validation.rows] == [
        row.config for key in CALIBRATIONS for row in rows_of(key)
    ]
    assert validation.not_predicted == ()
    for summary in validation.summaries:
        calibration = CALIBRATIONS[summary.calibration]
        rows = [row for row in validation.rows if row.calibration == summary.calibration]
        assert [row.left_out for row in rows] == list(calibration.errors)
        assert [row.family_left_out for row in rows] == list(calibration.family_errors)
        assert [row.source_left_out for row in rows] == list(calibration.source_errors)
        assert summary.in_sample.mean <= summary.left_out.mean
        assert all(row.calibrated and row.step and row.low and row.high for row in rows)
    assert sum(summary.left_out.rows for summary in validation.summaries) == len(validation.rows)


def test_a_file_of_the_same_rows_gives_the_same_figures() -> None:
    """Reading them back changes nothing but that their notes say what was assumed."""
    rows = [row for calibration in CALIBRATIONS.values() for row in calibration.rows]
    built_in, read = validate_built_in(), validate_rows(read_rows([cells(row) for row in rows]))
    for summary, other in zip(built_in.summaries, read.summaries, strict=True):
        assert summary.in_sample == other.in_sample
        assert summary.left_out.mean == pytest.approx(other.left_out.mean)
        assert summary.family_left_out.mean == pytest.approx(other.family_left_out.mean)
        sources = [[row.source_left_out for row in found.rows] for found in (built_in, read)]
        assert sources[0] == pytest.approx(sources[1])


def test_an_unseen_row_is_predicted_by_the_shipped_constants() -> None:
    """Its error left out is its error; the interval of a stranger is that of left-out sources."""
    (read,) = read_rows([LLAMA])
    assert read.row is not None
    validation = validate_rows([read])
    (check,) = validation.rows
    assert check.error == check.left_out == relative_error(read.row, CALIBRATIONS["trn1"].constants)
    assert not check.calibrated
    assert any("not in the calibration" in note for note in check.notes)
    assert check.predicted is not None
    assert check.low is not None
    assert check.high is not None
    assert check.low < check.predicted < check.high
    assert check.inside == (check.low <= 45 <= check.high)
    assert validation.summaries[0].coverage in ((0.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize(
    ("config", "source", "known"),
    [
        ("MPT by LLM-Foundry", "", True),
        ("mine", "mosaicml/llm-foundry@8c8dd48f README.md", True),
        ("mine", "a blog: twice as fast as llm-foundry", False),
        ("llm-foundry or AXLearn", "", False),
        ("xllm-foundryx", "", False),
    ],
)
def test_software_that_a_row_names_is_no_stranger(config: str, source: str, known: bool) -> None:
    """In its name or its source's repository, as published tables have it: the interval of left-out families."""
    row = next(row for row in CALIBRATIONS["h100"].rows if row.stack == "llm-foundry")
    bare = {**cells(row), "config": "mine", "source": "", "stack": ""}
    stranger, named = validate_rows(read_rows([bare, {**bare, "config": config, "source": source}])).rows
    assert any("software that is not told" in note for note in stranger.notes)
    assert any("trained by llm-foundry" in note for note in named.notes) == known
    assert stranger.low and stranger.predicted and named.low and named.predicted
    assert (named.predicted < 0.95 * stranger.predicted) == known  # strangers are faster on H100s
    assert (stranger.low / stranger.predicted < named.low / named.predicted) == known


def test_intervals_hold_of_models_that_are_split() -> None:
    """Models that tensor or pipeline parallelism splits lie inside as often as others."""
    rows = {row.config: row for key in CALIBRATIONS for row in elsewhere(key)}
    inside: dict[bool, dict[object, list[bool]]] = {False: {}, True: {}}
    for check in validate_built_in().elsewhere:
        training = rows[check.config].training
        split = training.workers > training.data_parallel
        inside[split].setdefault((check.kind, check.groups[-1]), []).append(bool(check.inside))
    for split in (False, True):
        assert 0.75 <= mean(map(mean, inside[split].values())) <= 0.9


def test_a_row_of_a_file_takes_no_part_in_the_width_that_judges_it() -> None:
    """Read back, rows of other software are held against the same intervals as where they are built in."""
    rows = [row for row in elsewhere("h100") if not row.lacks]
    built_in = {check.config: check for check in validate_built_in().elsewhere}
    for check in validate_rows(read_rows([cells(row) for row in rows])).rows:
        if any("software that is not told" in note for note in check.notes):
            assert check.low == pytest.approx(built_in[check.config].low)


def test_the_same_configuration_with_another_figure_is_noted() -> None:
    """Both figures are in the output; the row is held against a fit without its twin."""
    row = CALIBRATIONS["trn1"].rows[0]
    (check,) = validate_rows(read_rows([{**cells(row), "sequences_per_second": "4000"}])).rows
    assert check.calibrated
    assert "the same configuration is also published as 3614.49" in check.notes
    assert check.published == 4000
    assert check.left_out != check.error


def test_without_a_published_figure_there_is_a_prediction_and_no_error() -> None:
    """Such a row counts in no summary."""
    validation = validate_rows(read_rows([{**LLAMA, "sequences_per_second": ""}]))
    (check,) = validation.rows
    assert check.predicted is not None
    assert check.error is None
    assert check.inside is None
    assert validation.summaries == ()


def test_rows_that_cannot_be_predicted_keep_their_place() -> None:
    """With the reason, and the others as they would be alone."""
    bad = {**LLAMA, "architecture": "Perceiver", "config": "P"}
    validation = validate_rows(read_rows([bad, LLAMA, {**LLAMA, "nodes": "1", "config": "few"}]))
    assert [check.predicted is None for check in validation.rows] == [True, False, True]
    assert [check.config for check in validation.not_predicted] == ["P", "few"]
    assert all(check.reason and check.published == 45 for check in validation.not_predicted)
    assert validation.summaries[0].in_sample.rows == 1


def test_far_outside_the_range_the_interval_widens() -> None:
    """A thousand instances are said to be outside, and the interval says so too."""
    many = {**LLAMA, "nodes": "1024", "data_parallel": "4096", "global_batch": "65536"}
    near, far = validate_rows(read_rows([LLAMA, many])).rows
    assert near.outside_range == ()
    assert any(
        "cluster size 1,024 instances, calibrated from 1 instance to 32" in text for text in far.outside_range
    )
    assert near.low and near.high and far.low and far.high
    assert math.log(far.high / far.low) > 2 * math.log(near.high / near.low)


def test_newer_gpus_are_as_fast_as_their_specification_says() -> None:
    """H200 and B200 have the H100's constants. These rows were collected after that was decided, and set nothing."""
    with (Path(__file__).parent / "newer_gpus.csv").open() as file:
        checks = validate_rows(read_rows(list(csv.DictReader(file)))).rows
    assert {check.instance_type for check in checks} == {"ml.p5en.48xlarge", "ml.p6-b200.48xlarge"}
    assert all(CATALOG[check.instance_type].from_specification for check in checks)
    assert mean(abs(check.error or 0.0) for check in checks) == pytest.approx(0.13, abs=0.005)
    assert max(abs(check.error or 0.0) for check in checks) == pytest.approx(0.20, abs=0.005)
    assert all(check.inside for check in checks)


@pytest.mark.parametrize("instance", sorted(CATALOG))
def test_every_instance_type_can_be_validated(instance: str) -> None:
    """One instance with all its cores, BERT Large; where nothing is calibrated, that is the reason."""
    table = {"architecture": "BERT-Large", "instance_type": instance, "nodes": "1", "microbatch": "8",
             "sequence_length": "128", "sequences_per_second": "100"}  # fmt: skip
    (check,) = validate_rows(read_rows([table])).rows
    if CATALOG[instance].calibration is None:
        assert check.predicted is None and "is not calibrated" in (check.reason or "")
        return
    assert check.predicted is not None
    assert check.predicted > 0


def test_errors_are_absolute_and_ranked() -> None:
    """The 90th percentile is a row's own error."""
    errors = Errors.of([-0.1, 0.2, 0.0, 0.3, -0.4, 0.5, 0.6, 0.7, -0.9, 0.8])
    assert (errors.rows, errors.p90, errors.largest) == (10, 0.8, 0.9)
    assert errors.mean == pytest.approx(0.45)
