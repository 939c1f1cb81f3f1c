"""Plain scripts on a GPU: what the project measured, and what the model makes of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from statistics import mean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.reports import screen_of, text_of
from windtunnel import FullScale, compare, plan
from windtunnel.priceperf import CALIBRATIONS, CountedWorkload, InvalidInput, Run, Workload, instance_type
from windtunnel.priceperf.calibration import measured_scripts
from windtunnel.priceperf.calibration.accuracy import validate_rows
from windtunnel.priceperf.calibration.data_files import table
from windtunnel.priceperf.calibration.left_out import fitted, kind_of
from windtunnel.priceperf.calibration.measured_scripts import speed_of_script
from windtunnel.priceperf.calibration.published_rows import (
    measured,
    measured_others,
    published_others,
)
from windtunnel.priceperf.calibration.row_reader import PublishedRow, read_rows
from windtunnel.priceperf.model.described_step import training_step
from windtunnel.priceperf.model.plain_script import SOFTWARE
from windtunnel.priceperf.model.training_settings import Training
from windtunnel.priceperf.money.estimate import Estimate
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS
from windtunnel.priceperf.workload import rehearsed_scripts
from windtunnel.priceperf.workload.cluster import Cluster

CONSTANTS = {key: calibration.constants for key, calibration in CALIBRATIONS.items()}
P5 = instance_type("ml.p5.48xlarge")
SIZE = FullScale(train_samples=1_000_000)
TABLE = table("measured")


def test_every_measured_row_is_read_as_a_plain_script() -> None:
    read = read_rows(TABLE)
    assert len(read) == len({each.config for each in read}) == len(measured()) >= 100
    for each in read:
        assert each.row is not None and not each.notes, each
        assert each.row.training.plain and each.row.stack in SOFTWARE
        assert "measured by the project on 20" in each.row.source


def test_what_the_file_says_of_them_is_what_the_rows_say() -> None:
    """Run scripts/fit_calibrations.py after a change of measured.csv."""
    for kind, known in measured_scripts.scripts(CONSTANTS).items():
        found = measured_scripts.errors_of_scripts(kind)
        assert found == pytest.approx(measured_scripts.summary(known), abs=1e-4)
        assert fitted()["widths"]["script"][kind] == pytest.approx(
            measured_scripts.speed_and_width(known)[1], abs=1e-6
        )
    others = set(fitted()["widths"]["script"]) - set(fitted()["scripts"])
    assert all(fitted()["widths"]["script"][kind] == fitted()["widths"]["source"][kind] for kind in others)


def test_models_that_are_left_out_lie_within_the_interval_of_the_others() -> None:
    """As tuned software, which nothing told apart before, half of them would lie outside by far."""
    (known,) = measured_scripts.scripts(CONSTANTS).values()
    found = measured_scripts.judged(known)
    assert mean(abs(each.error) for each in found) < 0.2
    assert 0.75 <= mean(each.inside for each in found) <= 0.95
    tuned = [
        row.step_s
        / training_step(replace(row.training, plain=False), row.instance, CONSTANTS["h100"], 1).total_s
        for row in measured()
    ]
    assert mean(abs(ratio - 1) for ratio in tuned) > 0.5


def test_a_model_takes_no_part_in_what_judges_it() -> None:
    (known,) = measured_scripts.scripts(CONSTANTS).values()
    model = known[0].model
    wrong = [
        each._replace(difference=each.difference - 5.0) if each.model == model else each for each in known
    ]
    before, after = measured_scripts.judged(known), measured_scripts.judged(wrong)
    for each, (one, other) in zip(known, zip(before, after, strict=True), strict=True):
        if each.model == model:
            assert math.log1p(other.error) - math.log1p(one.error) == pytest.approx(5.0)


@given(row=st.sampled_from(measured()), times=st.integers(2, 64))
def test_never_faster_than_tuned_software_or_with_more_to_do(row: PublishedRow, times: int) -> None:
    training = row.training
    larger = replace(
        training, microbatch=training.microbatch * times, global_batch=training.global_batch * times
    )

    def seconds(one: Training) -> float:
        return training_step(one, P5, CONSTANTS["h100"], 1).total_s

    if training.matmul_dtype != "fp32":  # for which tuned software has no attention kernel of its own
        assert seconds(training) >= seconds(replace(training, plain=False))
    assert seconds(larger) >= seconds(training) * (
        1 - 1e-12
    )  # the host's time is a sum of the parts that it hides
    neuron = instance_type("ml.trn1.32xlarge")
    of_trn1 = replace(training, storage_dtype="bf16", matmul_dtype="bf16", mixed_precision=False)
    assert training_step(of_trn1, neuron, CONSTANTS["trn1"], 1) == training_step(
        replace(of_trn1, plain=False), neuron, CONSTANTS["trn1"], 1
    )


def bert(software: str | None = None) -> Estimate:
    """BERT Base, a small batch on p5."""
    job = Workload.transformer(
        "BERT-Base",
        sequence_length=128,
        global_batch=64,
        dtype="fp32",
        matmul_dtype="tf32",
        software=software,
    )
    found = compare(job, [P5.name, "ml.trn1.32xlarge"], full_scale=SIZE).comparison
    return next(item for item in found.estimates if item.instance is P5 or item.instance.name == P5.name)


def test_a_script_that_is_named_takes_longer_and_is_surer() -> None:
    """Its slow end held the script already: software that is not named may be one."""
    tuned, plain = bert(), bert(software="pytorch script")
    assert plain.step.total_s > 1.5 * tuned.step.total_s
    assert tuned.step_interval_s[1] > plain.step.total_s
    assert (
        plain.step_interval_s[1] / plain.step_interval_s[0]
        < tuned.step_interval_s[1] / tuned.step_interval_s[0]
    )
    assert bert(software="Hugging Face Trainer").step.total_s == plain.step.total_s


def test_a_plan_for_a_script_is_one() -> None:
    """On GPUs, as a comparison has it; NeuronCores' published scripts are plain already."""
    given: dict[str, Any] = {"sequence_length": 512, "global_batch": 256}
    names = ["ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.trn1.32xlarge"]
    report = plan("GPT-2", names, nodes=(1,), samples=1_000_000, software="PyTorch script", **given)
    usual = plan("GPT-2", names, nodes=(1,), samples=1_000_000, **given)
    text = screen_of(report)
    assert "On ml.p5.48xlarge, ml.p4d.24xlarge a plain script, which launches each kernel by itself." in text
    for found in report.plans.plans:
        item, training = found.estimate, found.training
        assert training.plain is not item.instance.is_neuron
        if item.instance.is_neuron:
            assert found in usual.plans.plans
            continue
        job = Workload.transformer(
            "GPT-2",
            microbatch=int(training.microbatch),
            tensor_parallel=training.tensor_parallel,
            pipeline_parallel=training.pipeline_parallel,
            zero=training.zero,
            recompute=training.recompute,
            software="PyTorch script",
            **given,
        )
        (own,) = compare(job, [item.name], full_scale=report.plans.size).comparison.estimates
        assert (own.step, own.range_check) == (item.step, item.range_check)


@pytest.mark.parametrize("model", ["GPT-2", "Llama-2-7B"])
def test_the_slow_end_of_unnamed_software_holds_a_script_whose_attention_has_32_bits(model: str) -> None:
    job = Workload.transformer(model, global_batch=1024, dtype="fp32", matmul_dtype="tf32")
    for name in (P5.name, "ml.p4de.24xlarge"):
        (unnamed,) = compare(job, [name], full_scale=SIZE).comparison.estimates
        script = replace(job, software="PyTorch script")
        (named,) = compare(script, [name], full_scale=SIZE).comparison.estimates
        assert unnamed.step_interval_s[1] > named.step.total_s


def test_the_error_of_known_software_is_not_said_of_a_script_that_nobody_measured_there() -> None:
    """On A100s a script has the interval of strangers."""
    job = Workload.transformer("BERT-Base", sequence_length=128, global_batch=64, software="PyTorch script")
    screen = screen_of(compare(job, ["ml.p4d.24xlarge"], full_scale=SIZE))
    assert "of software new to the model are off by" in screen
    assert "by its software" not in screen


def test_its_name_is_one_of_those_that_errors_list() -> None:
    with pytest.raises(InvalidInput, match=r"PyTorch script; .*"):
        bert(software="no such software")


def test_a_rehearsed_script_is_a_plain_one_on_gpus() -> None:
    """The measured classifier took 26.6 to 28.9 ms at batch 8 in fp32 and TF32 on the quickest of four machines, which
    launches in two thirds of the usual time, and its twin 42 on another.
    """
    found = compare(Workload.from_counters(COUNTERS), [P5.name], full_scale=SIZE, batch=64).comparison
    assert {item.software_speed for item in found.estimates} == {None}
    for item in found.estimates:
        low, high = item.step_interval_s
        assert low < 0.0289 / 0.8 + item.step.gradients_s and 0.042 + item.step.gradients_s < high
    rehearsed, none = (
        speed_of_script(instance_type(name), 1, "rehearsed") for name in (P5.name, "ml.p4d.24xlarge")
    )
    assert 0.9 < rehearsed < 1 == none


def test_a_file_that_names_it_is_judged_as_such() -> None:
    """By the interval of scripts, and not with the speed that is usual of strangers."""
    (check,) = validate_rows(read_rows([{**TABLE[0], "config": "mine"}])).rows
    row = measured()[0]
    modelled = row.training.global_batch / training_step(row.training, P5, CONSTANTS["h100"], 1).total_s
    speed = measured_scripts.log_speed_of_scripts(kind_of(row))
    assert speed is not None and check.predicted == pytest.approx(modelled * math.exp(speed))
    assert check.high is not None and check.low is not None
    assert math.log(check.high / check.low) == pytest.approx(
        2 * fitted()["widths"]["script"]["h100"], rel=1e-3
    )


def test_the_first_screen_says_that_it_is_a_script_and_how_right_that_is() -> None:
    job = Workload.transformer("BERT-Base", sequence_length=128, global_batch=64, software="PyTorch script")
    screen = screen_of(compare(job, [P5.name], full_scale=SIZE))
    assert "p5.48xlarge: a plain script, which launches each kernel by itself." in screen
    assert "plain scripts that the project measured are off by 16 % on p5 (H100) on average" in screen
    assert "no published row" not in screen


def test_what_the_file_says_of_rehearsed_ones_is_what_the_runs_say() -> None:
    """Run scripts/fit_calibrations.py after a change of rehearsed.json or measured_other_models.csv."""
    transformers, others = (rehearsed_scripts.compared(CONSTANTS, transformers=are) for are in (True, False))
    for kind, known in transformers.items():
        assert measured_scripts.errors_of_scripts(kind, "rehearsed") == pytest.approx(
            measured_scripts.summary(known), abs=1e-4
        )
        of_others = measured_scripts.summary(others[kind])
        assert measured_scripts.errors_of_scripts(kind, "others") == pytest.approx(of_others, abs=1e-4)
        width = measured_scripts.speed_and_width(known)[1]
        assert fitted()["widths"]["rehearsed"][kind] == pytest.approx(width, abs=1e-6)
    assert fitted()["widenings"]["other_model"] == pytest.approx(
        rehearsed_scripts.widening(CONSTANTS), abs=1e-4
    )


def test_every_rehearsed_model_was_measured_and_every_other_run_is_of_a_known_precision() -> None:
    for model in rehearsed_scripts.rehearsals():
        assert any(rehearsed_scripts.runs(model)) or any(rehearsed_scripts.published(model))
    assert len(rehearsed_scripts.rehearsals()) >= 20
    for run in measured_others():
        assert run.matmul_dtype in ("bf16", "tf32", "fp32") and run.instance is P5
        assert float(run.batch) > 0 and float(run.samples_per_second) > 0
        assert "measured by the project on 20" in run.source


def test_rehearsed_models_that_are_left_out_lie_within_the_interval_of_the_others() -> None:
    """Transformers, and models that are none."""
    for transformers in (True, False):
        (known,) = rehearsed_scripts.compared(CONSTANTS, transformers=transformers).values()
        found = measured_scripts.judged(known)
        assert len({each.script.model for each in found}) >= 10
        assert 0.75 <= mean(each.inside for each in found) <= 0.95
        assert mean(abs(each.error) for each in found) < 0.3


def published_and_modelled(*, on_neuron: bool) -> Iterator[tuple[str, float, bool]]:
    """What others published of each model: its name, log of the step beside the modelled one, and whether inside."""
    for model, job in rehearsed_scripts.rehearsals().items():
        for run in rehearsed_scripts.published(model):
            if run.instance.is_neuron is on_neuron:
                found = run.of(job).modelled(run.run, SIZE)
                apart = math.log(run.step_s / found.step.total_s)
                yield model, apart, -found.range_check.log_fast <= apart <= found.range_check.log_slow


def test_networks_that_others_published_lie_within_the_interval() -> None:
    """On A100s, by counts and by the speed that H100s have with such models: they set nothing."""
    found = list(published_and_modelled(on_neuron=False))
    assert len(found) == 8
    assert mean(abs(math.expm1(apart)) for _, apart, _ in found) < 0.2
    assert mean(inside for *_, inside in found) >= 0.75


def test_small_models_that_users_published_of_a_neuron_core_lie_within_the_interval() -> None:
    """In fp32. One of them, the residual network, has set how fast convolutions are, and the others nothing."""
    found = {model: (apart, inside) for model, apart, inside in published_and_modelled(on_neuron=True)}
    assert len(found) == len(published_others()) - 8 == 8
    assert all(inside for _, inside in found.values())
    assert abs(found["Residual CNN"][0]) < 0.05
    assert abs(found["CIFAR-10 CNN"][0]) < 0.2
    assert median(abs(math.expm1(apart)) for apart, _ in found.values()) < 0.4
    job = rehearsed_scripts.rehearsals()["Residual CNN"]
    (run,) = rehearsed_scripts.published("Residual CNN")
    as_products = replace(job, step=job.step.as_products()).modelled(run.run, SIZE)
    assert run.step_s > 5 * as_products.step.total_s


def test_a_model_that_is_no_transformer_has_the_speed_of_such_models() -> None:
    """Of others that were measured: convolutions take longer than the constants of transformers say."""
    job = rehearsed_scripts.rehearsals()["ResNet-50"]
    run = Run(Cluster(P5, 1), 8 * 128, job.precisions(P5)[0])
    slower = 1 / measured_scripts.speed_of_script(P5, 1, "others")
    assert job.modelled(run, SIZE).step.total_s == pytest.approx(
        slower * job.step_with(CONSTANTS["h100"], run).total_s
    )
    assert slower > 1.1 > 1 / measured_scripts.speed_of_script(P5, 1, "rehearsed")
    trust = text_of(compare(job, [P5.name], full_scale=SIZE))
    assert "models that are no transformers) that the project measured" in trust


def test_the_first_screen_says_that_convolutions_take_most_of_a_neuron_cores_step() -> None:
    """Of a GPU's they do not; a transformer's products are what the chip is there for."""
    said = "compute, {} ms of a step's {} ms on {}: mostly convolutions, modelled at a"
    networks = [rehearsed_scripts.rehearsals()[name] for name in ("ResNet-50", "wav2vec2-Base", "ViT-Base")]
    of_convolutions, of_a_third, of_attention = (
        screen_of(compare(job, ["ml.trn1.32xlarge"], full_scale=SIZE, batch=1024)) for job in networks
    )
    assert re.search(said.format("[0-9,]+", "[0-9,]+", "trn1.32xlarge"), of_convolutions)
    assert "mostly convolutions" in of_a_third
    assert "mostly convolutions" not in of_attention
    assert "mostly convolutions" not in screen_of(
        compare(networks[0], [P5.name], full_scale=SIZE, batch=1024)
    )


def test_the_hosts_speed_does_not_widen_twice() -> None:
    """What it may do to a run is in its own interval already: the rest sets the width."""
    near, far = (measured_scripts.Script("m", "", difference, host=0.3) for difference in (0.2, 0.5))
    assert near.apart(0.0) == 0.0
    assert far.apart(0.0) == pytest.approx(0.4)
    assert measured_scripts.judge(far, 0.0, 0.41).inside and not measured_scripts.judge(far, 0.0, 0.39).inside


def test_what_is_launched_is_counted_and_tracing_is_not_asked() -> None:
    """Twice the operations, twice the time, if the device has little to do; a NeuronCore traces as before."""
    job = rehearsed_scripts.rehearsals()["BERT-Base"]
    host = job.step.host
    assert host is not None and host.launch_s is not None
    hosts = replace(host, launch_s=2 * host.launch_s), replace(host, trace_s=10 * host.trace_s)
    twice, slow = (replace(job, step=replace(job.step, host=each)) for each in hosts)

    def step_s(of: CountedWorkload, name: str) -> float:
        instance = instance_type(name)
        precision = of.precisions(instance)[0]
        run = Run(Cluster(instance, 1), instance.core_count, precision)
        return of.step_with(CONSTANTS[instance.calibration or ""], run).total_s

    assert step_s(job, P5.name) == pytest.approx(host.launch_s)
    assert step_s(twice, P5.name) == pytest.approx(2 * host.launch_s)
    assert step_s(slow, P5.name) == step_s(job, P5.name)
    assert (
        step_s(twice, "ml.trn1.32xlarge")
        == step_s(job, "ml.trn1.32xlarge")
        < step_s(slow, "ml.trn1.32xlarge")
    )


@pytest.mark.parametrize("name", ["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.p5.48xlarge"])
def test_a_model_that_is_no_transformer_is_less_sure_everywhere(name: str) -> None:
    transformer, other = (rehearsed_scripts.rehearsals()[model] for model in ("ViT-Base", "ResNet-50"))
    assert transformer.is_transformer and not other.is_transformer
    instance = instance_type(name)
    run = Run(Cluster(instance, 1), 64 * instance.core_count, other.precisions(instance)[0])
    check = other.modelled(run, SIZE).range_check
    attending = replace(other.step, scores=transformer.step.scores, convolved=0.0)
    as_one = replace(other, step=attending).modelled(run, SIZE).range_check
    wider = math.hypot(as_one.log_fast, fitted()["widenings"]["other_model"])
    assert check.log_fast > 0.99 * wider  # and more where it lies outside the range besides
