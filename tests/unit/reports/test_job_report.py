"""A job's report: measured and modelled apart, every cost with price and date, nothing hidden."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timezone
from typing import Any

import pytest

from tests.fakes.reports import CountedJob, report_for_counters, screen_of, text_of
from tests.unit.reports.test_comparing import compiled_to
from windtunnel.errors import ConfigurationError, JobNotFinished
from windtunnel.priceperf import FP32, FullScale, Price, PriceBook
from windtunnel.reports.comparison.scaling import scaling
from windtunnel.reports.for_job import report_for_job
from windtunnel.reports.job.report import Precisions
from windtunnel.reports.published import published

FULL = FullScale(3_600_000, 1, 400_000, dataset_gib=1.7)


class FakeJob(CountedJob):
    """A finished job with counters, or on AWS without."""

    def __init__(self, counters: Mapping[str, Any] | None, **describe: Any) -> None:
        described = {
            "TrainingJobName": "bert",
            "TrainingJobArn": "arn:aws:sagemaker:us-east-1:000000000000:training-job/bert",
            "TrainingJobStatus": "Completed",
            "ResourceConfig": {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 1},
            "TrainingTimeInSeconds": 400,
            "BillableTimeInSeconds": 400,
        }
        super().__init__(counters, **{**described, **describe})


AWS = {
    "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/bert",
    "BillableTimeInSeconds": 6033,
    "TrainingTimeInSeconds": 6033,
    "TrainingStartTime": datetime(2023, 1, 1, tzinfo=timezone.utc),
}


def test_a_rehearsal_shows_what_ran_and_what_is_modelled(counters: Any) -> None:
    """local_cores are named; each modelled figure has its instance; two price dates."""
    text = report_for_job(FakeJob(counters()), FULL).to_text(full=True)
    assert "2 of 32 NeuronCores (local_cores" in text
    assert text.index("MEASURED HERE") < text.index("MODELLED")
    for needed in (
        "trn1.32xlarge", "p4d.24xlarge", "Cost on 2022-10-10", "Cost on 2025-06-01", "$24.725", "$37.69",
        "$25.251286", "seen", "interval", "Not billed: start", "OUTSIDE THE CALIBRATED RANGE", "compile",
        "off by 5 % on average", "±7 %", "THE ANSWER",
    ):  # fmt: skip
        assert needed in " ".join(text.split()), needed


def test_json_keeps_measured_and_modelled_apart(counters: Any) -> None:
    """Two objects; each cost carries price, date and status; the same call gives the same bytes."""
    report = report_for_job(FakeJob(counters()), FULL)
    data = json.loads(report.to_json())
    assert data["schema"] == "windtunnel.report/1"
    assert [found["on"] for found in data["modelled"]["decisions"]]  # the tables of who is cheapest
    assert data["measured"]["samples"] == 1600
    estimate = data["modelled"]["estimates"][0]
    assert estimate["instance_type"] == "ml.trn1.32xlarge"
    assert {"usd_per_hour", "effective_from", "status", "source"} <= set(estimate["costs"][0]["price"])
    assert len(estimate["costs"][0]["interval_usd"]) == 2
    assert "train_s" not in data["measured"]
    assert report.to_json() == report_for_job(FakeJob(counters()), FULL).to_json()


def test_a_small_instance_is_also_set_against_the_large(counters: Any) -> None:
    """A trn1.2xlarge rehearsal models itself, trn1.32xlarge and p4d; the verdict is the large one's."""
    report = report_for_counters(
        counters(instance_type="ml.trn1.2xlarge", instance_cores=2, local_cores=None)
    )
    assert report.comparison is not None
    names = [item.instance.name for item in report.comparison.estimates]
    assert names == ["ml.trn1.2xlarge", "ml.trn1.32xlarge", "ml.p4d.24xlarge"]
    assert "local_cores" not in report.to_text(full=True)
    assert "exactly what was rehearsed" in report.to_text(full=True)


def test_a_job_on_aws_shows_its_bill() -> None:
    """Billable seconds at the price in force when it started; no model."""
    report = report_for_job(FakeJob(None, **AWS))
    text = report.to_text(full=True)
    assert "$41.43" in text
    assert "24.725 on-demand, published, since 2022-10-10" in text
    assert "MODELLED" not in text
    assert report.to_dict()["modelled"] is None


def test_spot_and_several_instances_on_aws() -> None:
    """The saving is of the seconds; the bill counts every instance."""
    resources = {"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2}
    spot = {"EnableManagedSpotTraining": True, "BillableTimeInSeconds": 3600, "TrainingTimeInSeconds": 7200}
    text = report_for_job(FakeJob(None, **{**AWS, **spot, "ResourceConfig": resources})).to_text(full=True)
    assert re.search(r"Billable +3,600 s of each instance\n", text)
    assert "50 % of the seconds" in text
    assert "$49.45" in text


GROUPS = {
    "InstanceGroups": [
        {"InstanceGroupName": "head", "InstanceType": "ml.trn1.2xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "workers", "InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2},
    ]
}


def test_instance_groups_on_aws() -> None:
    """Each group at its own price."""
    hour = {"BillableTimeInSeconds": 3600, "TrainingTimeInSeconds": 3600, "ResourceConfig": GROUPS}
    text = report_for_job(FakeJob(None, **{**AWS, **hour})).to_text(full=True)
    assert "ml.trn1.2xlarge x 1 + ml.trn1.32xlarge x 2" in text
    assert "3,600 s x 3 instances" in text
    price = PriceBook().price("ml.trn1.2xlarge", date(2023, 1, 1)).usd_per_hour
    large = PriceBook().price("ml.trn1.32xlarge", date(2023, 1, 1)).usd_per_hour
    assert f"${price + 2 * large:,.2f}" in text


def test_instance_groups_of_which_one_trains(counters: Any) -> None:
    """Of one type, too: what the others do is no part of the model's step, and they are billed all the same."""
    one_type = [{"instance_type": "ml.trn1.32xlarge", "instance_count": number} for number in (1, 2)]
    some = {**counters(cores_used=32, world_size=64, instance_count=3), "instance_groups": one_type}
    report = report_for_counters(some)
    assert report.comparison is None
    assert "not all 3 instances of its groups train" in str(report.unavailable)
    all_train = {**counters(cores_used=32, world_size=96, instance_count=3), "instance_groups": one_type}
    assert report_for_counters(all_train).comparison is not None


def test_instance_groups_here(counters: Any) -> None:
    """Several types: what ran is shown, and nothing is modelled of one type for all."""
    report = report_for_job(FakeJob(counters(), ResourceConfig=GROUPS))
    assert report.comparison is None
    assert "instance groups of several types" in report.to_text(full=True)
    listed = [
        {"instance_type": kind, "instance_count": 1} for kind in ("ml.trn1.2xlarge", "ml.trn1.32xlarge")
    ]
    assert report_for_counters({**counters(), "instance_groups": listed}).comparison is None
    same = {"InstanceGroups": [GROUPS["InstanceGroups"][1]]}
    assert report_for_job(FakeJob(counters(), ResourceConfig=same)).comparison is not None


def test_an_instance_without_price_on_aws_says_so() -> None:
    """No cost is invented."""
    resources = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1}
    assert "No price of ml.g5.xlarge" in report_for_job(
        FakeJob(None, **{**AWS, "ResourceConfig": resources})
    ).to_text(full=True)


def test_a_report_names_the_programs_that_it_is_not_of(counters: Any) -> None:
    """A job that trained, then evaluated: the figures are of the first."""
    several = counters()
    programs = [("train.py", 2, 30, 30), ("evaluate.py", 1, 9, 0)]
    keys = ("script", "world_size", "steps", "training_steps")
    several["programs"] = [dict(zip(keys, program, strict=True)) for program in programs]
    said = text_of(report_for_counters(several))
    assert (
        "those of train.py (2 cores, 30 training steps); not included: evaluate.py (1 core, 9 steps)" in said
    )


def test_a_script_that_never_used_the_device_is_told(counters: Any) -> None:
    """train: null shows the measured part and the reason."""
    report = report_for_job(FakeJob(counters(train=None)), FULL)
    assert report.comparison is None
    assert "no training step on the device" in report.to_text(full=True)


def test_a_job_that_failed_before_its_first_step_is_not_asked_for_more(counters: Any) -> None:
    """Not whether its script steps an optimizer, nor for a longer rehearsal: the failure is what there is to mend."""
    short = {"rehearsed_steps": 3, "ended_early": True, "loaders": []}
    train = {**counters()["train"], "collectives": {}, "updates": None}
    for told in (counters(train=None), counters(train=train, parameters=None, input=short)):
        ended = str(
            report_for_job(FakeJob(told, TrainingJobStatus="Failed", FailureReason="KeyError: 'img'"))
        )
        assert (
            "It failed: KeyError: 'img'" in ended
            and "No answer: the job failed before a training step" in ended
        )
        assert "rehearse more" not in ended and "optimizer" not in ended
        assert "optimizer" in str(report_for_job(FakeJob(told)))


def test_a_failed_job_says_why() -> None:
    """Before its figures, and for programs; what a terminal would obey is written out."""
    report = report_for_job(FakeJob(None, TrainingJobStatus="Failed", FailureReason="ClientError: no\x1b[2J"))
    assert re.search(r"Why it failed +ClientError: no\\x1b\[2J\n", report.to_text(full=True))
    assert report.to_dict()["measured"]["failure_reason"] == "ClientError: no\\x1b[2J"


@pytest.mark.parametrize("attempts", [None, 1, 3])
def test_a_job_that_started_again_says_how_often_and_what_of_it_is_billed(
    counters: Any, attempts: int | None
) -> None:
    """After an interruption or a retry: its seconds and steps are those of all attempts, the modelled start is one."""
    report = report_for_counters({**counters(), "attempts": attempts})
    text = text_of(report)
    assert ("Attempts 3" in text and "Each attempt is billed" in text) == (attempts == 3)
    assert report.to_dict()["measured"].get("attempts") == attempts


def test_counters_that_are_not_there_follow_the_status() -> None:
    """An ended job without counters is reported as such; a running one raises."""

    class Without(FakeJob):
        def counters(self) -> Mapping[str, Any] | None:
            raise JobNotFinished("no counters")

    assert "left no counters" in report_for_job(Without(None)).to_text(full=True)
    with pytest.raises(JobNotFinished):
        report_for_job(Without(None, TrainingJobStatus="InProgress"))


def test_what_the_compiler_makes_of_fp32_is_in_the_answer(counters: Any) -> None:
    """Its flags are the script's own, so its graphs tell; the first screen says what one flag would save."""
    plain = report_for_job(FakeJob(compiled_to(counters(), "fp32")), FULL)
    cast = report_for_job(FakeJob(compiled_to(counters(), "bf16")), FULL)
    assert plain.comparison and cast.comparison
    of_plain, of_cast = plain.comparison.estimates[0], cast.comparison.estimates[0]
    assert (of_plain.precision.name, of_cast.precision.name) == ("fp32", "auto-cast bf16")
    assert of_plain.step.compute_s > 2 * of_cast.step.compute_s
    assert of_plain.range_check.log_slow > of_cast.range_check.log_slow + 0.1
    first, other = (screen_of(report) for report in (plain, cast))
    assert "trn1.32xlarge, fp32" in first
    assert "trn1.32xlarge, auto-cast bf16" in other
    saved = 1 - of_cast.step.total_s / of_plain.step.total_s
    assert saved > 0.05
    assert f"inputs to bf16, a step on trn1.32xlarge takes {saved * 100:.0f} % less" in first
    assert "--auto-cast=matmult in NEURON_CC_FLAGS" not in other
    assert "Few in fp32 on NeuronCores" in first
    assert "Few in fp32" not in other
    by_type = report_for_job(FakeJob(compiled_to(counters(), "tf32")), FULL)
    assert "trn1.32xlarge, auto-cast tf32" in by_type.to_text() and by_type.comparison
    assert by_type.comparison.estimates[0].billable_s == of_cast.billable_s
    half = counters()
    half["train"]["flops"] = {"fp16": half["train"]["flops"]["fp32"]}
    for report, said in ((by_type, "auto-cast tf32"), (report_for_job(FakeJob(half), FULL), "fp16")):
        rows = next(part for part in report.document().sections if part.title == "Modelled").rows
        assert next(row.cells[0] for row in rows if row.label == "Matmuls run as") == said


@pytest.mark.parametrize(("kind", "severity"), [("b", "error"), ("no_exchange", "warning")])
def test_no_flag_comes_before_what_makes_a_training_worthless(
    counters: Any, kind: str, severity: str
) -> None:
    """Two things to change have room: that, then what makes it dear."""
    said = [
        {"kind": kind, "severity": severity, "line": "t.py:1", "message": message, "advice": "Mend it."}
        for kind, severity, message in (
            ("a", "warning", "It waits."),
            (kind, severity, "Nothing is exchanged."),
        )
    ]
    counted = compiled_to({**counters(), "diagnostics": said}, "fp32")
    first = screen_of(report_for_job(FakeJob(counted), FULL))
    assert first.index("Nothing is exchanged.") < first.index("--auto-cast=matmult in NEURON_CC_FLAGS")
    assert "It waits." not in first


def test_html_is_escaped_and_complete(counters: Any) -> None:
    """A job name cannot inject markup; tags are balanced; the text's sections are all there."""
    html = report_for_job(
        FakeJob(counters(), TrainingJobName="<script>alert(1)</script>"), FULL
    )._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    for tag in ("div", "section", "table", "tr", "td", "ul", "li"):
        assert len(re.findall(f"<{tag}[ >]", html)) == html.count(f"</{tag}>"), tag
    for title in ("Measured here", "Modelled", "Who is cheapest", "How far to trust it", "Assumptions"):
        assert title in html


def test_printing_and_rich_show_the_same(counters: Any) -> None:
    """print(report) and console.print(report) are one document."""
    from rich.console import Console

    report = report_for_job(FakeJob(counters()), FULL)
    console = Console(width=100, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(report)
    assert str(report).split() == capture.get().split()
    assert "print it to read it" in repr(report)


def test_published_table_as_text_and_json() -> None:
    """The figures of the table and where it is off."""
    text = published().to_text(full=True)
    for needed in (
        "$41.47",
        "$41.435",
        "OFF: 0.08 % high",
        "$68.606",
        "39.5 %",
        "39.6 %",
        "9.9 %",
        "+22 %",
        "$25.2513",
    ):
        assert needed in text, needed
    data = published().to_dict()
    assert [row["agrees_to_printed_precision"] for row in data["rows"]] == [False, True]
    assert data["saving_percent"]["with_later_p4d_price"] == pytest.approx(9.854, abs=1e-3)


def test_preparation_left_out_is_said_where_the_verdict_is(counters: Any) -> None:
    """Until it is stated, the answer says that it is missing."""
    unstated = report_for_counters(counters(), FULL).document().sections[0].notes
    stated = (
        report_for_counters(counters(), FullScale(3_600_000, preparation_s=3900, evaluation_samples=400_000))
        .document()
        .sections[0]
    )
    assert "Not included, as not stated: preparation of the data." in unstated[-1]
    texts = report_for_counters(counters(), replace(FULL, sequence_length=128)).document().sections[0].notes
    assert "Not included, as not stated: preparation of the data (tokenising)." in texts[-1]
    none = report_for_counters(counters(), FullScale(3_600_000, 1, 0, preparation_s=3900))
    assert "evaluation" not in none.document().sections[0].notes[-1]
    assert not any("Not in it" in line for line in stated.notes)


@pytest.mark.parametrize(("rate", "said"), [(None, True), (60.0, False)])
def test_waiting_that_was_seen_here_is_said_not_to_be_in_the_figure(
    counters: Any, rate: float | None, said: bool
) -> None:
    """Until the loader's rate is stated: else a job that waits for its input looks cheap."""
    found = {**counters(), "diagnostics": [{"kind": "input_bound", "severity": "warning", "line": "a.py:1"}]}
    size = replace(FULL, loader_samples_per_s=rate)
    report = report_for_counters(found, size)
    trust = report.document().sections[0].notes[-1]
    assert ("Not included, as not stated: waiting for input (--loader-samples-per-second)" in trust) is said
    assert ("Waiting for input is not modelled." in text_of(report)) is said


def test_what_falls_back_to_the_cpu_is_said_not_to_be_in_the_figure(counters: Any) -> None:
    """The report cannot know what it takes on trn1's host."""
    found = {**counters(), "diagnostics": [{"kind": "cpu_fallback", "severity": "warning", "line": "a.py:1"}]}
    told, not_told = (
        report_for_counters(each, FULL).document().sections[0].notes[-1] for each in (found, counters())
    )
    assert "Not included: what trn1 leaves to the CPU." in told
    assert "leaves to the CPU" not in not_told


def test_prices_fetched_from_aws_enter_the_report(counters: Any) -> None:
    """A price that AWS has changed is one more date; the data say when it was fetched."""
    fetched = Price(
        "ml.p4d.24xlarge",
        20.0,
        "us-east-1",
        "SageMaker training on-demand",
        date(2026, 11, 1),
        "fetched",
        "the test's own figure",
        date(2026, 11, 20),
    )
    report = report_for_counters(counters(), FULL, prices=PriceBook().adding([fetched]))
    p4d = json.loads(report.to_json())["modelled"]["estimates"][1]
    assert [cost["on"] for cost in p4d["costs"]] == ["2022-10-10", "2025-06-01", "2026-11-01"]
    assert p4d["costs"][-1]["price"]["fetched_on"] == "2026-11-20"
    assert "prices of 2026-11-01" in text_of(report)


def test_a_report_says_of_which_day_its_prices_are(counters: Any) -> None:
    """Without a fetch the note names the built-in book and the command; with a day, the day."""
    report = report_for_counters(counters(), FULL)
    assert "nothing was fetched from AWS" in report.price_notes[0]
    text = text_of(report_for_job(FakeJob(counters()), FULL, prices_on=date(2024, 5, 1)))
    assert "priced at the prices in force on 2024-05-01" in text
    assert "prices of 2024-05-01" in text and "prices of 2025-06-01" not in text
    assert report_for_counters(counters(), FULL, prices=PriceBook()).price_notes == ()


def test_a_bill_of_aws_keeps_the_prices_of_its_day() -> None:
    """Pricing at another day changes what is modelled, not what AWS charged."""
    report = report_for_job(FakeJob(None, **AWS), prices_on=date(2026, 1, 1))
    assert "$41.43" in report.to_text(full=True)


def test_a_bill_of_aws_has_the_price_of_its_region() -> None:
    """Where the book knows it; else the price says which region it is of."""
    ireland = Price(
        "ml.trn1.32xlarge",
        30.0,
        "eu-west-1",
        "SageMaker training on-demand",
        date(2022, 11, 1),
        "seen",
        "a test",
    )
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/bert"
    job = FakeJob(None, **{**AWS, "TrainingJobArn": arn})
    bill = report_for_job(job, prices=PriceBook().adding([ireland])).to_text(full=True)
    assert "$30.00 on-demand" in bill and "Price: eu-west-1" in bill
    assert "Price: us-east-1" in report_for_job(job, prices=PriceBook()).to_text(full=True)


def test_an_assumed_discount_is_never_called_a_price(counters: Any) -> None:
    """Costs and bill of a book with a discount say so, and of what."""
    book = PriceBook().assuming("SageMaker managed spot", 0.5)
    modelled = " ".join(report_for_counters(counters(), FULL, prices=book).to_text(200, full=True).split())
    assert "status assumed" in modelled and "a discount stated by the user" in modelled
    bill = report_for_job(FakeJob(None, **AWS), prices=book).to_text(full=True)
    assert "$12.3625 SageMaker managed spot, assumed" in bill and "on-demand, assumed" not in bill


def test_a_reader_may_choose_instances_nodes_offering_and_precision(counters: Any) -> None:
    """Each choice is in the figures: an EC2 price for a SageMaker name, two instances, fp32 on the GPU."""
    job = FakeJob(counters())
    usual = report_for_job(job, FULL, user_calibration=None).comparison
    chosen = report_for_job(
        job, FULL, instance_count=2, offering="EC2 on-demand", precisions=Precisions(trn=FP32, gpu=FP32),
        user_calibration=None,
    ).comparison  # fmt: skip
    assert usual is not None
    assert chosen is not None
    assert [item.precision.name for item in usual.estimates] == ["auto-cast bf16", "TF32"]
    assert [item.precision.name for item in chosen.estimates] == ["fp32", "fp32"]
    assert [item.instance_count for item in chosen.estimates] == [2, 2]
    assert {cost.price.offering for _, costs in chosen.costs for cost in costs if cost} == {"EC2 on-demand"}
    assert {cost.price.usd_per_hour for cost in chosen.costs[-1][1] if cost} == {21.5, 21.957642}
    scaled = scaling(job, "ml.p4d.24xlarge", (1, 2), full_scale=FULL, precisions=Precisions(gpu=FP32))
    assert scaled.scaling.precision is FP32


def test_a_discount_of_nothing_is_refused(counters: Any) -> None:
    """It would be of on-demand, which has none; costs without it would be taken for discounted ones."""
    with pytest.raises(ConfigurationError, match="offering="):
        report_for_job(FakeJob(counters()), FULL, discount=0.3)


def test_spot_is_on_demand_less_a_stated_discount(counters: Any) -> None:
    """And is called assumed."""
    job = FakeJob(counters())
    text = report_for_job(job, FULL, offering="SageMaker managed spot", discount=0.5).to_text()
    assert "managed spot us-east-1 2022-10-10, assumed" in text
