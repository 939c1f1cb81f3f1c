"""torch.compile on a GPU: what pairs of runs show, and what the model and the first screen make of it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.fakes.reports import screen_of, text_of
from windtunnel import FullScale, plan
from windtunnel import compare as report
from windtunnel.priceperf import CALIBRATIONS, PriceBook, Run, Workload, compare, instance_type
from windtunnel.priceperf.calibration import measured_scripts, torch_compile
from windtunnel.priceperf.calibration.accuracy import validate_rows
from windtunnel.priceperf.calibration.data_files import table
from windtunnel.priceperf.calibration.described_range import widenings
from windtunnel.priceperf.calibration.left_out import fitted
from windtunnel.priceperf.calibration.published_rows import compiled_and_not
from windtunnel.priceperf.calibration.row_reader import read_rows
from windtunnel.priceperf.model.described_step import training_step
from windtunnel.priceperf.model.plain_script import COMPILED
from windtunnel.priceperf.model.precision import BF16_AUTOCAST, compiled
from windtunnel.priceperf.money.estimate import Estimate
from windtunnel.priceperf.workload.cluster import Cluster

P4D, P5, TRN1 = "ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.trn1.32xlarge"
SIZE = FullScale(train_samples=1_000_000)


def test_the_runs_of_a_pair_differ_in_torch_compile_alone() -> None:
    found = list(compiled_and_not())
    assert len(found) == len(table("torch_compile")) >= 17
    told_apart = {"config", "published", "stack", "source"}
    for with_it, without in found:
        differ = {
            one.name for one in fields(with_it) if getattr(with_it, one.name) != getattr(without, one.name)
        }
        assert {"config", "published"} <= differ <= told_apart, with_it.config
        assert "compile" in with_it.config and "compile" not in without.config
        assert not with_it.instance.is_neuron


def test_what_the_file_says_is_what_the_pairs_say() -> None:
    """Run scripts/fit_calibrations.py after a change of torch_compile.csv."""
    gain, width = measured_scripts.speed_and_width(torch_compile.pairs(), torch_compile.SHRINKAGE)
    assert fitted()["torch_compile"] == measured_scripts.summary(
        torch_compile.pairs(), torch_compile.SHRINKAGE
    )
    assert torch_compile.log_gain() == pytest.approx(gain, abs=1e-4)
    assert widenings()["torch_compile"] == pytest.approx(width, abs=1e-4)


def test_left_out_models_and_pytorchs_own_survey_lie_within_the_interval() -> None:
    known = torch_compile.pairs()
    assert (
        0.75 <= mean(each.inside for each in measured_scripts.judged(known, torch_compile.SHRINKAGE)) <= 0.95
    )
    gain, width = measured_scripts.speed_and_width(known, torch_compile.SHRINKAGE)
    assert abs(math.log(1.43) - gain) < width


def test_measured_compiled_scripts_are_predicted_better_than_as_plain_ones() -> None:
    """Each without its own model in the speed of scripts and in the gain."""
    constants = {key: calibration.constants for key, calibration in CALIBRATIONS.items()}
    ((_, scripts),) = measured_scripts.scripts(constants).items()
    pairs, off, as_plain, inside = torch_compile.pairs(), [], [], []
    for row, _ in compiled_and_not():
        if row.stack == COMPILED:
            model = row.training.architecture
            gain, wide = measured_scripts.speed_and_width(
                [each for each in pairs if each.model != model], torch_compile.SHRINKAGE
            )
            speed, width = measured_scripts.speed_and_width([each for each in scripts if each.model != model])
            modelled = training_step(row.training, row.instance, constants["h100"], row.nodes).total_s
            difference = math.log(modelled / row.step_s)
            off.append(abs(difference - speed - gain))
            as_plain.append(abs(difference - speed))
            inside.append(off[-1] <= math.hypot(width, wide))
    assert len(off) == 6 and mean(inside) > 0.8
    assert mean(off) < 0.75 * mean(as_plain)


def bert(software: str | None, **changes: Any) -> Workload:
    """BERT Base in fp32 storage."""
    return Workload.transformer(
        "BERT-Base", sequence_length=128, global_batch=512, dtype="fp32", software=software, **changes
    )


def test_a_plain_script_has_it_among_its_settings_and_tuned_software_does_not() -> None:
    def settings(software: str | None, name: str = P4D) -> list[str]:
        return [one.name for one in bert(software).precisions(instance_type(name))]

    usual = ["TF32", "fp32", "bf16 autocast"]
    assert settings("PyTorch script") == [*usual, "bf16 autocast, compiled"]
    assert settings(None) == settings("torchtitan") == usual
    assert settings(COMPILED) == [f"{name}, compiled" for name in usual]
    assert settings(COMPILED, TRN1) == settings(None, TRN1)


@pytest.mark.parametrize("gpu", [P4D, P5])
def test_the_gain_makes_every_step_shorter_and_the_interval_wider(gpu: str, counters: Any) -> None:
    """Of a description and of a rehearsal, by the same factor."""
    jobs = (bert("PyTorch script"), Workload.from_counters(counters()))
    for job in jobs:
        run = Run(Cluster(instance_type(gpu), 1), 512.0, BF16_AUTOCAST)
        plain = job.modelled(run, SIZE)
        quick = job.modelled(run._replace(precision=compiled(BF16_AUTOCAST)), SIZE)
        assert quick.step.total_s == pytest.approx(plain.step.total_s / math.exp(torch_compile.log_gain()))
        before, after = plain.range_check.log_slow, quick.range_check.log_slow
        assert after >= math.hypot(before, widenings()["torch_compile"]) - 1e-9  # more outside of the range
    (named,) = compare(bert(COMPILED, matmul_dtype="bf16"), [gpu], SIZE).estimates
    assert named.step.total_s == pytest.approx(
        jobs[0]
        .modelled(Run(Cluster(instance_type(gpu), 1), 512.0, compiled(BF16_AUTOCAST)), SIZE)
        .step.total_s
    )


def test_a_neuroncore_is_as_fast_with_that_name_as_without_one() -> None:
    def step(software: str | None) -> Estimate:
        return compare(bert(software), [TRN1], SIZE).estimates[0]

    assert step(COMPILED).step == step("PyTorch script").step


def test_a_file_that_names_it_is_judged_as_such() -> None:
    (row,) = [
        each for each in table("measured") if each["config"].endswith("BERT-Base s128 TF32 1xH100 mb64")
    ][-1:]
    checks = validate_rows(
        read_rows([{**row, "config": "mine", "stack": one} for one in ("PyTorch script", COMPILED)])
    )
    plain, quick = checks.rows
    assert plain.predicted and quick.predicted and plain.high and plain.low and quick.high and quick.low
    assert quick.predicted / plain.predicted == pytest.approx(math.exp(torch_compile.log_gain()))
    assert quick.high / quick.low > plain.high / plain.low


def test_the_first_screen_names_it_only_if_it_changes_more_than_autocast(counters: Any) -> None:
    """At some prices of p4d torch.compile alone changes the answer; at some both do, and one is told."""
    told = set()
    job = Workload.from_counters(counters())
    for dollars in range(28, 52, 4):
        book = PriceBook().stating({P4D: float(dollars)}, date(2025, 6, 1))
        screen = screen_of(report(job, [TRN1, P4D], full_scale=FullScale(3_600_000), prices=book))
        told.add(("in bf16 autocast:" in screen, "in bf16 autocast, compiled:" in screen))
    assert (False, True) in told and (True, False) in told


def test_it_is_judged_without_compile_time_where_the_answer_is() -> None:
    """As it is with a compile cache: both sentences have the same probabilities."""
    job = Workload.from_counters(json.loads(Path(__file__).with_name("recorded_bert.json").read_text()))

    compiling, cached = (
        screen_of(report(job, [TRN1, P4D], full_scale=FullScale(3_600_000, compile_cached=each)))
        for each in (False, True)
    )
    assert "(with a compile cache)" in compiling
    said = r"With the GPU script in [^:]*: [^:]*? %"
    assert re.findall(said, compiling) == re.findall(said, cached) != []


def test_a_plan_and_a_comparison_call_it_compiled() -> None:
    job = bert(COMPILED)
    assert "p4d.24xlarge: a plain script, with torch.compile." in screen_of(
        report(job, [TRN1, P4D], full_scale=SIZE)
    )
    found = plan("BERT-Large", instances=[P4D], samples=10**6, global_batch=256, software=COMPILED)
    assert "On ml.p4d.24xlarge a plain script, with torch.compile." in text_of(found)


@pytest.mark.parametrize("gpu", [P4D, P5])
@pytest.mark.parametrize("name", ["BERT-Base", "GPT-2-XL", "Llama-3.1-8B"])
def test_a_compiled_script_lies_between_the_plain_one_and_tuned_software(gpu: str, name: str) -> None:
    """Large models keep the device busy without it: there it gains nothing, and nothing is faster than tuned."""

    def by(software: str) -> Estimate:
        job = Workload.transformer(name, global_batch=256, sequence_length=512, software=software)
        return compare(job, [gpu], SIZE).estimates[0]

    whole = by(COMPILED)
    assert whole.training is not None
    constants = CALIBRATIONS[whole.instance.calibration or ""].constants
    tuned = training_step(replace(whole.training, plain=False), whole.instance, constants, 1).total_s
    plain, quick = by("PyTorch script").step.total_s, whole.step.total_s
    assert min(tuned, plain) <= quick * (1 + 1e-9)
    assert quick <= plain * (1 + 1e-9)
