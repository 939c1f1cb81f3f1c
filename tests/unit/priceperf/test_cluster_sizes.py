"""How much of an error two clusters of one instance type share, held against rows that did not measure it."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean

import pytest

from windtunnel.priceperf import FullScale, Workload, compare, decisions
from windtunnel.priceperf.calibration.cluster_sizes import differences, measured, own_part
from windtunnel.priceperf.model.intervals import group_quantile
from windtunnel.priceperf.money.verdict import ratio_width

PAGE = Path(__file__).parents[3] / "docs/explanation/figures.md"


def test_left_out_software_lies_inside_as_often_as_promised() -> None:
    """The part comes from all other software. Of a job's pairs of clusters about 80 % lie inside, as the page says."""
    found, inside = differences(), []
    for own, distances in found.items():
        part = group_quantile([pairs for other, pairs in found.items() if other[1] != own[1]])
        inside.append(fmean(distance <= part for distance in distances))
    assert 0.75 < fmean(inside) < 0.9
    pairs, software = sum(map(len, found.values())), len({job[1] for job in found})
    page = PAGE.read_text()
    assert f"Only {own_part():.2f} of an error is a cluster's own" in page
    assert f"{pairs:,} pairs of rows" in page
    assert f"{len(found)} groups of one model by one software ({software} kinds)" in page
    assert f"{100 * fmean(inside):.0f} % of a group's pairs lie inside" in page


def test_the_file_has_what_the_rows_say() -> None:
    """`scripts/fit_calibrations.py` has run since they changed."""
    assert own_part() == pytest.approx(measured(), abs=1e-4)


def test_two_numbers_of_one_type_are_told_apart_sooner() -> None:
    """16 instances beside 4 of the same: their ratio is surer than their costs. No price of their hour turns it."""
    job, size = Workload.transformer("Llama-3.1-8B", global_batch=1024), FullScale(3_000_000)
    both = [("ml.trn1.32xlarge", 16), ("ml.trn1.32xlarge", 4)]
    comparison = compare(job, both, size)
    decision = decisions(comparison)[-1]
    one, other = decision.costs
    assert one is not None and other is not None and decision.cheapest == 1
    assert decision.break_evens == (None, None)
    down, up = ratio_width((comparison.estimates[1], other), (comparison.estimates[0], one))
    assert down + up < math.sqrt(2) * math.log(other.high_usd / other.low_usd) * (own_part() + 0.2)
    assert decision.probability is not None and 0.7 < decision.probability < 0.9
