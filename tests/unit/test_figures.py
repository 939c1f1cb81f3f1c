"""The figures that pages repeat are those that the commands print. A new published row changes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from windtunnel.cli import main as cli
from windtunnel.priceperf.calibration.calibrations import CALIBRATIONS
from windtunnel.priceperf.published.bert_jobs_predicted import JOB, predictions
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS
from windtunnel.reports.job.report import report_for_counters

FAMILIES = ("trn1", "a100")


def text(page: str) -> str:
    """Of a page, by its path."""
    return (Path(__file__).resolve().parents[2] / page).read_text()


def validated(capsys: pytest.CaptureFixture[str]) -> tuple[Any, Any]:
    """Summary and constants that `windtunnel validate` prints."""
    assert cli.main(["validate", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    return data["summary"], data["constants"]


def test_the_first_page_has_these(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors of the rows, and each line of the excerpt of `windtunnel report --published`."""
    page, (summary, _) = text("README.md"), validated(capsys)
    errors = [summary[family]["leave_one_out"]["mean_percent"] for family in FAMILIES]
    assert (
        f"Each of {summary['rows']} published throughputs is predicted from the others with an error of "
        f"{errors[0]:.1f} % (trn1) and {errors[1]:.1f} % (A100) on average."
    ) in page
    (excerpt,) = re.findall(r"```\n( THIS MODEL.*?)\n```", page, flags=re.DOTALL)
    assert cli.main(["report", "--published"]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in excerpt.splitlines() if line not in printed] == []
    (table,) = re.findall(r"```\n( +batch \(each\).*?)\n```", page, flags=re.DOTALL)
    assert table in str(report_for_counters(COUNTERS, JOB))


def test_the_page_on_figures_has_these(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of errors is what the command prints."""
    page, (summary, constants) = text("docs/explanation/figures.md"), validated(capsys)
    assert f"each of the {summary['rows']} published throughputs" in page
    fitted = [sum(item["fitted"] for item in constants[name].values()) for name in FAMILIES]
    rows = [len(CALIBRATIONS[name].rows) for name in FAMILIES]
    assert f"| trn1 ({rows[0]} rows, {fitted[0]} fitted constants) |" in page
    assert f"| p4d ({rows[1]} rows, {fitted[1]} fitted constants) |" in page
    for label, part in (
        ("in sample", "in_sample"),
        ("each row predicted from the others", "leave_one_out"),
        ("each family of models predicted from the other families", "leave_one_family_out"),
    ):
        cells = [
            f"{errors['mean_percent']:.1f} / {errors['median_percent']:.1f} / {errors['max_percent']:.1f} %"
            for errors in (summary["trn1"][part], summary["a100"][part])
        ]
        assert f"| {label} | {' | '.join(cells)} |" in page
    coverage = [f"{summary[family]['interval_coverage_percent']:.0f} %" for family in FAMILIES]
    assert f"| left-out rows inside their 80 % interval | {' | '.join(coverage)} |" in page
    counted = [mean(map(abs, CALIBRATIONS[name].counts_errors)) * 100 for name in FAMILIES]
    assert "are off by {:.0f} % (trn1) and {:.0f} % (A100) on average".format(*counted) in page
    found = predictions()
    trn1, p4d = found.trn1, found.p4d
    for row in (
        f"| iterations/s | {trn1.iterations_per_second:.2f} | 6.64 | {p4d.iterations_per_second:.2f} | 5.44 |",
        f"| billable seconds | {trn1.estimate.billable_s:,} | 6,033 | {p4d.estimate.billable_s:,} | 6,553 |",
        f"| cost, trn1 / p4d | {found.cost_ratio:.3f} | {found.published_cost_ratio:.3f} | | |",
    ):
        assert row in page
