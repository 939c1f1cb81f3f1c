"""A user's correction: shrunk, narrower with more jobs, and applied to steps alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.priceperf import (
    CALIBRATIONS,
    CountedWorkload,
    Estimate,
    Evidence,
    Flight,
    FullScale,
    InvalidInput,
    Workload,
    check_flight,
    compare,
    evidence_of,
)
from windtunnel.priceperf.calibration.corrections import (
    Z,
    correction,
    corrections,
    fingerprint,
    is_far,
    job_sd,
    prior_sd,
)
from windtunnel.priceperf.money.flight_check import Compared

TRN1 = CALIBRATIONS["trn1"]
FULL = FullScale(3_600_000, 1, 400_000, dataset_gib=1.7, preparation_s=2400)


def job(
    ratio: float, name: str = "a", workload: str | None = None, spread: float = 1.0, **more: Any
) -> Evidence:
    """A job that took ``ratio`` times the modelled 1,000 s."""
    real = 1000 * ratio
    values = {
        "job": name,
        "on": date(2025, 1, 1),
        "instance_type": "ml.trn1.32xlarge",
        "instance_count": 1,
        "workload": workload or name,
        "model": fingerprint(TRN1),
        "modelled_s": 1000.0,
        "real_s": real,
        "real_low_s": real / spread,
        "real_high_s": real * spread,
        **more,
    }
    return Evidence(**values)


def test_one_job_by_hand() -> None:
    """The formula of the module, computed here from its two deviations."""
    prior, scatter = prior_sd(TRN1), job_sd(TRN1)
    weight = (1 / scatter**2) / (1 / scatter**2 + 1 / prior**2)
    found = correction([job(1.5)], TRN1)
    assert found.factor == pytest.approx(1.5**weight)
    posterior = 1 / (1 / scatter**2 + 1 / prior**2)
    assert found.log_half_width == pytest.approx(1.2816 * math.sqrt(posterior + scatter**2), rel=1e-4)


@pytest.mark.parametrize("family", ["trn1", "a100"])
def test_the_prior_is_the_error_of_the_calibration(family: Any) -> None:
    """Without any job the two deviations together are the calibration's interval."""
    calibration = CALIBRATIONS[family]
    together = math.hypot(prior_sd(calibration), job_sd(calibration))
    assert Z * together == pytest.approx(calibration.log_slow)


@given(st.lists(st.floats(0.2, 5), min_size=1, max_size=6), st.floats(1, 1.5))
def test_a_correction_is_nearer_to_1_than_its_jobs(ratios: list[float], spread: float) -> None:
    """Shrunk towards no correction, between the mean of the jobs and 1."""
    found = correction([job(ratio, str(n), spread=spread) for n, ratio in enumerate(ratios)], TRN1)
    mean = sum(map(math.log, ratios)) / len(ratios)
    assert abs(math.log(found.factor)) <= abs(mean) + 1e-12
    assert math.log(found.factor) * mean >= 0


@given(st.floats(0.2, 5), st.lists(st.floats(0.95, 1.05), min_size=1, max_size=6), st.floats(1, 1.5))
def test_more_workloads_that_agree_narrow_the_interval(ratio: float, by: list[float], spread: float) -> None:
    """Each further one, down to what jobs differ by; never wider than the calibration's own."""
    jobs = [job(ratio * factor, str(n), spread=spread) for n, factor in enumerate(by)]
    widths = [correction(jobs[: n + 1], TRN1).log_half_width for n in range(len(jobs))]
    assert all(later < earlier for earlier, later in pairwise(widths))
    assert Z * job_sd(TRN1) < widths[-1] and widths[0] < TRN1.log_slow


def test_workloads_that_contradict_each_other_widen_it() -> None:
    """One that took as modelled and one that took three times as long: the next may be either."""
    found = correction([job(1.0), job(3.0, "b")], TRN1)
    low, high = found.factor * math.exp(-found.log_half_width), found.factor * math.exp(found.log_half_width)
    assert low < 1 and high > 3


def test_runs_of_one_workload_are_one_observation() -> None:
    """Ten runs of a script say no more about other scripts than one."""
    once = correction([job(1.5)], TRN1)
    often = correction([job(1.5, str(n), workload="a") for n in range(10)], TRN1)
    assert (often.factor, often.log_half_width) == pytest.approx((once.factor, once.log_half_width))


def test_unsure_seconds_weigh_less() -> None:
    """Where fixed costs may be half of the seconds, the job moves the model less."""
    assert correction([job(1.5, spread=1.4)], TRN1).factor < correction([job(1.5)], TRN1).factor


def test_jobs_of_another_model_and_family_do_not_count() -> None:
    """Constants that were fitted again make older jobs void; families stay apart."""
    assert corrections([job(1.5, model="tensor=1")]) == {}
    p4d = job(1.2, "b", instance_type="ml.p4d.24xlarge", model=fingerprint(CALIBRATIONS["a100"]))
    found = corrections([job(1.5), p4d])
    assert {family: item.jobs for family, item in found.items()} == {"trn1": ("a",), "a100": ("b",)}
    with pytest.raises(InvalidInput, match="needs jobs that it models"):
        correction([p4d], TRN1)


def test_evidence_is_above_0() -> None:
    """Logs need it."""
    with pytest.raises(InvalidInput, match="above 0"):
        job(1.0, real_low_s=0.0)
    assert is_far(job(20)) and is_far(job(0.05)) and not is_far(job(2))


@pytest.fixture
def workload(counters: Callable[..., Any]) -> CountedWorkload:
    """BERT base as rehearsed."""
    return CountedWorkload.from_counters(counters())


def modelled(workload: CountedWorkload, factor: float | None = None, **more: Any) -> Estimate:
    """BERT base on one ml.trn1.32xlarge, with a correction of about ``factor``."""
    used = None if factor is None else {"trn1": replace(correction([job(factor)], TRN1), factor=factor)}
    return compare(workload, ["ml.trn1.32xlarge"], FULL, corrections=used, **more).estimates[0]


@given(st.floats(0.3, 4))
def test_steps_and_evaluation_are_scaled_and_nothing_else(factor: float) -> None:
    """Every second of a step; set-up, compilation and transfers stay."""
    from tests.fakes.counters import counters as fixture

    work = CountedWorkload.from_counters(fixture._get_wrapped_function()()())
    plain, own = modelled(work), modelled(work, factor)
    assert own.train_s == pytest.approx(plain.train_s * factor)
    assert own.step.compute_s == pytest.approx(plain.step.compute_s * factor)
    for before, after in zip(plain.fixed, own.fixed, strict=True):
        expected = before.seconds * (factor if before.name == "evaluation" else 1)
        assert after.seconds == pytest.approx(expected), before.name
    assert own.correction is not None and own.correction.jobs == ("a",)


def test_a_description_takes_no_correction() -> None:
    """What was learnt of the model from counts says nothing of the one from shapes."""
    described = Workload.transformer("bert-base", microbatch=8, sequence_length=128)
    used = {"trn1": correction([job(1.5)], TRN1)}
    plain, own = (compare(described, ["ml.trn1.32xlarge"], FULL, corrections=given) for given in (None, used))
    assert own.estimates == plain.estimates and own.estimates[0].correction is None


def test_the_interval_is_the_corrections_own_and_widens_outside_the_range(workload: CountedWorkload) -> None:
    """As many times as the model's own does."""
    own = modelled(workload, 1.0)
    assert own.correction is not None
    widened = modelled(workload).range_check.log_fast / TRN1.log_fast
    low, high = own.step_interval_s
    assert math.log(high / low) / 2 == pytest.approx(own.correction.log_half_width * widened)


def flight(**replaced: Any) -> Flight:
    """6,033 s, 5,940 of them in the Training phase."""
    values: dict[str, Any] = {
        "job": "bert-real",
        "status": "Completed",
        "instance_type": "ml.trn1.32xlarge",
        "instance_count": 1,
        "started": date(2023, 1, 1),
        "training_s": 6033.0,
        "billable_s": 6033.0,
        "phases": {"Starting": 600.0, "Downloading": 60.0, "Training": 5940.0, "Uploading": 33.0},
        **replaced,
    }
    return Flight(**values)


def test_evidence_is_the_training_phase_without_its_fixed_costs(workload: CountedWorkload) -> None:
    """Set-up, preparation and compilation are taken off; their ends make the ends of the real seconds."""
    estimate = modelled(workload)
    fixed = [item for item in estimate.fixed if item.name in ("set-up", "preparation", "compile")]
    found = evidence_of(flight(), estimate, workload)
    assert found.real_s == 5940 - sum(item.seconds for item in fixed)
    assert found.real_low_s == 5940 - sum(item.high_s for item in fixed)
    assert found.real_high_s == 5940 - sum(item.low_s for item in fixed)
    evaluation = next(item for item in estimate.fixed if item.name == "evaluation")
    assert found.modelled_s == estimate.train_s + evaluation.seconds
    assert corrections([found])["trn1"].factor > 1


@pytest.mark.parametrize(
    ("replaced", "words"),
    [
        ({"status": "Failed"}, "ended as Failed"),
        ({"status": "Stopped"}, "ended as Stopped"),
        ({"interrupted": True}, "trained twice"),
        ({"may_start_warm": True}, "warm pool"),
        ({"phases": {"Training": 2500.0}}, "may be fixed costs alone"),
        ({"phases": {}}, "may be fixed costs alone"),
    ],
)
def test_what_does_not_tell_is_refused(
    workload: CountedWorkload, replaced: dict[str, Any], words: str
) -> None:
    """With the reason."""
    with pytest.raises(InvalidInput, match=words):
        evidence_of(flight(**replaced), modelled(workload), workload)


def test_a_job_that_waits_for_its_samples_is_no_measure(workload: CountedWorkload) -> None:
    """Its seconds are the loader's; one whose loader keeps up is as without it."""
    waits, keeps_up = (
        compare(workload, ["ml.trn1.32xlarge"], replace(FULL, loader_samples_per_s=rate)).estimates[0]
        for rate in (0.01, 1e6)
    )
    with pytest.raises(InvalidInput, match="seconds are the loader's"):
        evidence_of(flight(), waits, workload)
    assert evidence_of(flight(), keeps_up, workload) == evidence_of(flight(), modelled(workload), workload)


def test_a_corrected_estimate_is_no_measure(workload: CountedWorkload) -> None:
    """Else the second job would be held against the first one's correction."""
    with pytest.raises(InvalidInput, match="corrected estimate"):
        evidence_of(flight(), modelled(workload, 1.2), workload)


def test_predicted_and_real_stand_side_by_side(workload: CountedWorkload) -> None:
    """Errors are predicted / real - 1; a spot job's seconds are compared before their discount."""
    estimate = modelled(workload)
    check = check_flight(flight(), estimate, None)
    assert check.clock.error == pytest.approx(estimate.billable_s / 6033 - 1)
    assert check.cost is None and check.steps is not None and check.steps.real < check.training.real == 5940
    fixed = [item for item in estimate.fixed if item.name in ("set-up", "preparation", "compile")]
    assert check.steps.real_ends == (
        5940 - sum(item.high_s for item in fixed),
        5940 - sum(item.low_s for item in fixed),
    )
    spot = check_flight(flight(billable_s=2000.0, spot=True), estimate, None)
    assert spot.clock.real == 6033
    assert check_flight(flight(phases={"Training": 100.0}), estimate, None).steps is None


def test_a_figure_that_is_partly_assumed_is_outside_only_with_all_its_range() -> None:
    """Where what was taken off may be half or double, its middle alone decides nothing."""
    assert not Compared("x", 100, 90, 120, 60).inside
    assert Compared("x", 100, 90, 120, 60, (20, 95)).inside
    assert not Compared("x", 100, 90, 120, 60, (20, 80)).inside
    assert Compared("x", 100.4, 99.6, 100.4, 101).inside
