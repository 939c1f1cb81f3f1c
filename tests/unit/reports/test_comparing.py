"""`windtunnel.compare` and `windtunnel.scaling`: any job in, an answer with its probability out."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

import windtunnel
from tests.fakes.reports import CountedJob, report_for_counters, screen_of, text_of
from tests.unit.priceperf.test_answer import LONG, P4D, SHORT, SMALL, TRN1, rehearsed
from windtunnel.errors import JobNotFinished
from windtunnel.priceperf import (
    CALIBRATIONS,
    BatchRule,
    FullScale,
    InvalidInput,
    PerDevice,
    PriceBook,
    PriceUnknown,
)
from windtunnel.rendering.format import HOURS_FROM_S
from windtunnel.reports.modelled.fitted_notes import LINES

FULL = windtunnel.FullScale(3_600_000, 1, 400_000, dataset_gib=1.7)
OF_128 = replace(FULL, sequence_length=128)


def compiled_to(counters: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The same where the compiler runs products of fp32 in that dtype."""
    return {**counters, "graphs": {**counters["graphs"], "largest": {"fp32_products": dtype}}}


def giant() -> windtunnel.Workload:
    """A job that nobody rehearses."""
    return windtunnel.Workload.transformer(
        "GPT3-175B", microbatch=1, sequence_length=2048, global_batch=2048, tensor_parallel=8,
        pipeline_parallel=16,
    )  # fmt: skip


def test_a_job_its_counters_and_a_description_compare_alike(counters: Any) -> None:
    """The same figures from a job and from its counters; what the compiler makes of fp32 reaches the model."""
    by_job = windtunnel.compare(CountedJob(counters(), TrainingJobName="bert-1"), full_scale=FULL)
    by_counters = windtunnel.compare(counters(), full_scale=FULL)
    assert by_job.title == "bert-1"
    assert by_job.comparison == by_counters.comparison
    uncast = windtunnel.compare(CountedJob(compiled_to(counters(), "fp32")), full_scale=FULL)
    assert uncast.comparison.estimates[0].train_s > by_job.comparison.estimates[0].train_s
    cast = windtunnel.compare(compiled_to(counters(), "bf16"), full_scale=FULL)
    assert cast.comparison == by_job.comparison
    assert windtunnel.compare(giant(), full_scale=FULL, instance_count=16).title.startswith("GPT3-175B")


def test_the_answer_is_in_the_text(counters: Any) -> None:
    """Each date of prices, break-even, per million, sensitivity, batch rule, range, ways to buy the hour."""
    text = text_of(windtunnel.compare(counters(), full_scale=OF_128, scaling="strong"))
    for needed in (
        "at prices of 2022-10-10", "at prices of 2025-06-01", "WHO IS CHEAPEST", "EC2 Capacity Block",
        "break-even", "a million samples", "a million tokens", "IF ONE THING WERE DIFFERENT", "spot",
        "assumption", "as rehearsed on each NeuronCore; GPUs share the job's batch.",
        "SCALING ON ML.TRN1.32XLARGE",
        "With the GPU script in fp32", "OUTSIDE THE CALIBRATED RANGE", "$25.251286",
        "errors of two instances are independent",
    ):  # fmt: skip
        assert needed in text, needed
    assert "energy" not in text.lower()


@pytest.mark.parametrize("width", [72, 100])
def test_text_keeps_to_its_width(counters: Any, width: int) -> None:
    """No line is longer than the terminal, and no cell is cut."""
    for report in (
        report_for_counters(counters(), FULL),
        windtunnel.compare(counters(), full_scale=FULL, scaling="weak"),
        windtunnel.compare(giant(), full_scale=FULL, instance_count=16, scaling="strong"),
        windtunnel.compare(
            giant(),
            [
                ("ml.trn1n.32xlarge", 16),
                ("trn1.32xlarge", 16),
                ("ml.p4de.24xlarge", 16),
                ("p4d.24xlarge", 64),
            ],
            FULL,
        ),
    ):
        text = report.to_text(width, full=True)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text


def test_what_cannot_run_is_not_hidden() -> None:
    """First in the report, and in the data."""
    report = windtunnel.compare(
        windtunnel.Workload.transformer("GPT3-175B", microbatch=1, sequence_length=2048, tensor_parallel=8),
        full_scale=FULL,
    )
    assert (
        "does not fit the memory of trn1.32xlarge (245 GiB of 14.7 GiB a worker), p4d.24xlarge (326 GiB of"
        in report.document().sections[0].notes[0]
    )
    assert "batch (a copy)" in screen_of(report)
    data = report.to_dict()
    assert data["estimates"][0]["memory"]["fits"] is False
    for item, row in zip(data["answer"]["instances"], report.document().sections[0].rows, strict=True):
        assert row.cells[0] == f"{item['global_batch']:g} ({item['samples_each']:g})"  # batch (each)
        assert item["samples_each"] == 8 * item["samples_per_worker"]  # a copy is 8 workers


def test_how_many_instances_cannot_run_it_is_said() -> None:
    """The job cannot run on 64 of what one runs: with the name alone it did not on what it does."""
    job = windtunnel.Workload.transformer("Llama-3.1-8B", sequence_length=2048, global_batch=32)
    report = windtunnel.compare(job, [(TRN1, 1), (TRN1, 64), ("trn1.32xlarge", 64), (TRN1, 128)], FULL)
    text = screen_of(report)
    several = "runs on trn1.32xlarge, but cannot run on trn1.32xlarge x 64 and trn1.32xlarge x 128."
    assert several in text
    assert "NOT MODELLED, trn1.32xlarge x 64: a global batch of 32 is less" in text
    assert set(report.to_dict()["not_possible"]) == {f"{TRN1} x 64", "trn1.32xlarge x 64", f"{TRN1} x 128"}


def test_what_runs_on_one_instance_alone_says_why() -> None:
    """And what would let the other run it: a job that the user is to compare."""
    job = windtunnel.Workload.transformer(
        "Llama-3.1-8B", sequence_length=2048, global_batch=128, lora_rank=16, zero="none"
    )
    answer = windtunnel.compare(job, full_scale=FULL).document().sections[0].notes[0]
    assert "the job runs on p4d.24xlarge, and does not fit the memory of trn1.32xlarge (" in answer
    assert "windtunnel plan" in answer


def test_what_lacks_a_price_and_what_does_not_fit_are_told_apart() -> None:
    """What runs, and would be compared if its price were stated, is not told to be too large for another one."""
    whole = windtunnel.Workload.transformer("Llama2-70B", global_batch=1024, zero="full", recompute="full")
    report = windtunnel.compare(whole, [("ml.p4de.24xlarge", 4), SMALL], FULL, on=date(2024, 1, 1))
    first = "No answer: no price of ml.p4de.24xlarge is in the book. State them with --price TYPE=USD"
    assert report.screen.verdict.startswith(first)
    assert "The job does not fit the memory of trn1.2xlarge (" in report.screen.verdict
    assert report.to_dict()["answer"]["obstacle"] == "no price"
    shared = windtunnel.Workload.transformer(
        "GPT-3 6.7B", sequence_length=8192, global_batch=256, tensor_parallel=4
    )
    report = windtunnel.compare(shared, [TRN1, "p5.48xlarge", ("ml.trn2.3xlarge", 4)], FULL)
    assert not report.comparison.estimates[0].fits
    assert report.screen.verdict.startswith(
        "No winner: of what the job fits only p5.48xlarge on EC2 has a price, not ml.trn2.3xlarge. State"
    )


@pytest.mark.parametrize("samples", [100, 50_000, 10**9])
@pytest.mark.parametrize("length", [128, 32_768])
@pytest.mark.parametrize("names", [["ml.trn2.48xlarge", "ml.p5.48xlarge"], [TRN1, P4D, "ml.p5.48xlarge"]])
def test_no_way_to_buy_the_hour_has_a_winner_on_one_screen_alone(
    samples: int, length: int, names: list[str]
) -> None:
    """What is too small has none at any price; of what is outside the range, that is said."""
    job = windtunnel.Workload.transformer("BERT-Large", sequence_length=length, global_batch=1024)
    report = windtunnel.compare(job, names, FullScale(samples))
    (ways,) = [part for part in report.document().sections if part.title == "Ways to buy the hour"]
    outside = report.screen.answer is not None and report.screen.answer.obstacle == "outside"
    for row in ways.rows:
        _, told, rest = report.screen.prices.partition(f"At {row.label} prices of ")
        if told and row.cells[-1] == "-":
            assert outside or ", outside the calibrated range" in rest.partition(". ")[0]


@pytest.mark.parametrize(
    "names",
    [
        ["trn1", "p4d", "p5", "p4de", "trn1n.32xlarge"],
        ["trn1", "trn1n", "trn2", "p4d", "p4de", "p5", "g5", "g6e"],
    ],
)
def test_tables_of_many_instances_break_no_word(names: list[str]) -> None:
    """In 100 columns: where one table would, there are several with some of the instances each."""
    job = windtunnel.Workload.transformer("Llama-3.2-1B", global_batch=1024)
    report = windtunnel.compare(job, names, LONG)
    lines = report.to_text(full=True).splitlines()
    assert max(map(len, lines)) <= 100
    cells = [
        text
        for part in report.document().sections
        for texts in ((*part.columns, part.label_header), *((row.label, *row.cells) for row in part.rows))
        for text in texts
    ]
    assert {word for text in cells for word in text.split()} <= {
        word for line in lines for word in line.split()
    }


def test_a_price_of_ec2_is_told_from_one_of_sagemaker_in_every_section() -> None:
    """Both have an instance of that name, at other prices."""
    report = windtunnel.compare(rehearsed(), ["trn1.32xlarge", TRN1], LONG)
    sections = {part.title: part for part in report.document().sections}
    changes = [row.label for row in sections["If one thing were different"].rows]
    assert len(changes) == len(set(changes)) and "trn1.32xlarge on EC2 spot" in changes
    notes = [note for part in sections.values() for note in part.notes]
    assert sum(note.startswith("Price of trn1.32xlarge on EC2 from") for note in notes) == 1
    assert (
        "Prices: EC2 on-demand us-east-1 2022-10-10; trn1.32xlarge: SageMaker on-demand us-east-1"
        in report.screen.prices
    )


def test_a_way_to_buy_the_hour_has_each_instance_once() -> None:
    """A type that is listed with both its prices is one instance of each way, and shares its probability with none."""
    both, each = (
        windtunnel.compare(rehearsed(), names, LONG)
        for names in ([P4D, P4D.removeprefix("ml."), TRN1, TRN1.removeprefix("ml.")], [P4D, TRN1])
    )
    ways = [
        next(part for part in report.document().sections if part.title == "Ways to buy the hour")
        for report in (both, each)
    ]
    assert ways[0].columns == ("p4d.24xlarge", "trn1.32xlarge", "cheapest")
    assert ways[0].rows == ways[1].rows


@pytest.mark.parametrize(("count", "batch", "near"), [(3, 1024, 1056), (8, 1000, 1024), (8, 1023, 1024)])
def test_a_batch_that_copies_do_not_share_evenly_costs_about_what_a_near_one_does(
    count: int, batch: int, near: int
) -> None:
    """Three instances have a factor that 1,024 lacks, and 1,023 has none of theirs: no reason to look for a split that
    has it, or for a winner.
    """
    job = windtunnel.Workload.transformer("Llama-3.1-8B", sequence_length=4096, global_batch=batch)
    asked = [(TRN1, count), (P4D, count)]
    report = windtunnel.compare(job, asked, FULL)
    assert "Fractions are averages: " in " ".join(report.document().sections[0].notes)
    beside = windtunnel.compare(job, asked, FULL, batch=near)
    for one, other in zip(report.comparison.estimates, beside.comparison.estimates, strict=True):
        assert one.fits
        assert one.step.total_s / batch == pytest.approx(other.step.total_s / near, rel=0.03)
        assert one.training is not None
        stated = job.changed(
            tensor_parallel=one.training.tensor_parallel,
            pipeline_parallel=one.training.pipeline_parallel,
            zero=one.training.zero,
        )
        found = windtunnel.compare(stated, [(one.name, count)], FULL).comparison.estimates[0]
        assert found.step.total_s == one.step.total_s


def test_a_copys_sequences_need_not_be_whole_stated_passes() -> None:
    """33 of the largest copy's are no whole passes of two, nor are those of any other number of copies."""
    job = windtunnel.Workload.transformer(
        "Llama-3.1-8B", sequence_length=4096, microbatch=2, global_batch=1025
    )
    item = windtunnel.compare(job, [(TRN1, 8)], FULL).comparison.estimates[0]
    near = windtunnel.compare(job, [(TRN1, 8)], FULL, batch=1024).comparison.estimates[0]
    assert item.fits and item.step.total_s == pytest.approx(near.step.total_s, rel=0.06)


@pytest.mark.parametrize(("stated", "told"), [(5, ""), (8, "Passes of 6.25 on trn1.32xlarge: ")])
def test_passes_that_are_no_longer_those_stated_are_said(stated: int, told: str) -> None:
    """25 sequences of a copy are five passes of 5, and no whole ones of 8."""
    job = windtunnel.Workload.transformer(
        "Llama2-7B",
        sequence_length=2048,
        global_batch=100,
        microbatch=stated,
        tensor_parallel=8,
        zero="optimizer",
    )
    batch = windtunnel.compare(job, [TRN1], FULL).screen.batch
    assert told in batch and ("Passes of" in batch) == bool(told)


@pytest.mark.parametrize("size", [LONG, SHORT, FullScale(100)])
@pytest.mark.parametrize("compiled", [0.0, 1e12, 1e16])
def test_the_decisions_in_json_are_the_answers(size: FullScale, compiled: float) -> None:
    """With their obstacle, and without compile time where that would turn them."""
    report = windtunnel.compare(rehearsed(compiled=compiled), [TRN1, P4D], size)
    data = report.to_dict()
    said, last = data["answer"], data["decisions"][-1]
    assert [last[key] for key in ("cheapest", "clear", "obstacle", "without_compile")] == [
        said[key] for key in ("winner", "clear", "obstacle", "without_compile")
    ]
    assert last["probability"] == pytest.approx(said["probability"])
    decided = {item["priced_as"]: item["decided_usd"] for item in said["instances"]}
    assert decided == {item["priced_as"]: item["usd"] for item in last["instances"]}
    answer = report.screen.answer
    assert answer is not None and report.decisions[-1] == answer.decided
    base, text = report.sensitivity[0], report.to_text(full=True)
    same = None if base.cheapest is None else report.comparison.estimates[base.cheapest].name
    assert (
        said["winner"] == same or "None of this names a winner" in text or "Compile time is in these" in text
    )


def test_json_is_plain_and_repeatable(counters: Any) -> None:
    """Decisions, sensitivity and scaling as data; probabilities add up; no price, no cost."""
    report = windtunnel.compare(
        counters(), ["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.trn2.48xlarge"], OF_128, scaling="weak"
    )
    data = json.loads(report.to_json())
    assert data["schema"] == "windtunnel.comparison/1"
    for decision in data["decisions"]:
        chances = [item["probability_cheapest"] for item in decision["instances"]]
        assert chances[2] is None
        assert chances[:2] == [None, None] if decision["obstacle"] else sum(chances[:2]) == pytest.approx(1)
        assert decision["instances"][2] == {
            "priced_as": "ml.trn2.48xlarge", "instance_count": 1, "usd": None, "interval_usd": None,
            "probability_cheapest": None, "break_even": None,
        }  # fmt: skip
    assert data["estimates"][2]["costs"] == []
    own = data["estimates"][0]["costs"][0]
    tokens = own["usd_per_million_samples"]["usd"] / own["usd_per_million_tokens"]["usd"]
    assert tokens == pytest.approx(128, rel=1e-5)
    assert {"change", "costs", "cheapest", "probability"} <= set(data["sensitivity"][0])
    assert len(data["scaling"]) == 3
    again = windtunnel.compare(
        counters(), ["ml.trn1.32xlarge", "ml.p4d.24xlarge", "ml.trn2.48xlarge"], OF_128, scaling="weak"
    )
    assert report.to_json() == again.to_json()


def test_prices_of_a_day(counters: Any) -> None:
    """One decision, at the prices in force then; a day before all prices is refused."""
    report = windtunnel.compare(counters(), full_scale=FULL, on=date(2024, 5, 1))
    assert [str(decision.on) for decision in report.decisions] == ["2024-05-01"]
    with pytest.raises(PriceUnknown, match="the first in the book is of 2022-10-10"):
        windtunnel.compare(counters(), full_scale=FULL, on=date(2019, 1, 1))
    unpriced = windtunnel.compare(counters(), ["ml.trn2.48xlarge"], FULL)
    assert "none of these has a price in the book" in unpriced.to_text(full=True)
    assert unpriced.to_dict()["decisions"] == []


def test_one_of_a_thing_is_one(counters: Any) -> None:
    """Where a single instance is too small, and where a batch is of one sample."""
    split: dict[str, Any] = {"tensor_parallel": 32, "zero": "optimizer", "global_batch": 64, "microbatch": 1}
    big = windtunnel.Workload.transformer("Llama-3.1-70B", **split)
    table = windtunnel.scaling(big, "ml.trn1.32xlarge", (1, 16), "strong", FULL)
    assert "DOES NOT FIT on 1 instance: " in text_of(table)
    each = windtunnel.compare(counters(), full_scale=FULL, batch=PerDevice(1))
    assert "Batch: 1 sample on each worker, as stated." in screen_of(each)
    several = text_of(windtunnel.compare(counters(), [TRN1, "ml.trn2.48xlarge", "ml.trn2.3xlarge"], FULL))
    assert (
        "No price of trn2.48xlarge and trn2.3xlarge is in the book, so they have times and no cost."
        in several
    )
    alone = windtunnel.compare(replace(rehearsed(), samples=1), [TRN1])
    assert "exactly what was rehearsed: 1 sample in all" in screen_of(alone)


def test_scaling_prints_and_serialises(counters: Any) -> None:
    """A table of its own; rows that cannot run say why."""
    report = windtunnel.scaling(counters(), "ml.trn1.32xlarge", (1, 2, 64), "strong", FULL)
    assert "Not possible on 64 instances: a global batch of 256 is less than one sample" in text_of(report)
    rows = report.to_dict()["rows"]
    assert [row["possible"] for row in rows] == [True, True, False]
    assert rows[1]["speed_up"] <= 2


def test_what_cannot_be_compared_is_refused() -> None:
    """The error says what can."""
    with pytest.raises(InvalidInput, match="at least one instance type"):
        windtunnel.compare(giant(), [], windtunnel.FullScale(10_000))
    with pytest.raises(InvalidInput, match=r"Workload\.transformer"):
        windtunnel.compare(3)  # type: ignore[arg-type]
    with pytest.raises(JobNotFinished, match="no counters"):
        windtunnel.compare(CountedJob(None))


def test_no_cost_without_its_price_and_date(counters: Any) -> None:
    """A scaling table says what an hour costs and since when, as the comparison does."""
    for name, price in (("ml.trn1.32xlarge", "$24.725"), ("ml.p4d.24xlarge", "$25.251286")):
        report = windtunnel.scaling(counters(), name, (1, 2), "weak", FULL)
        used = report.scaling.rows[0].cost
        assert used is not None
        assert f"Cost: at {price} an hour of an instance" in text_of(report)
        assert f"valid from {used.price.effective_from}" in text_of(report)


def test_what_a_description_leaves_open_is_said() -> None:
    """Batch, recomputation and attention that were chosen are assumptions; what was given is none."""
    given: dict[str, Any] = {"microbatch": 1, "sequence_length": 2048, "tensor_parallel": 8}
    open_ = text_of(
        windtunnel.compare(windtunnel.Workload.transformer("GPT3-6.7B", **given), full_scale=FULL)
    )
    assert "Global batch not given: 4 on trn1.32xlarge, 1 on p4d.24xlarge," in open_
    assert "Recompute not given: selective on trn1.32xlarge" in open_
    assert "Attention not given: " in open_
    stated = windtunnel.Workload.transformer(
        "GPT3-6.7B", global_batch=1024, recompute="full", attention="eager", **given
    )
    assert "not given" not in text_of(windtunnel.compare(stated, full_scale=FULL))
    job = windtunnel.Workload.transformer("GPT3-6.7B", **given)
    assert "Global batch not given" not in text_of(windtunnel.compare(job, full_scale=FULL, batch=2048))


def test_what_each_instance_compiles_is_said(counters: Any) -> None:
    """Also where the first one compiles nothing."""
    for report in (
        windtunnel.compare(counters(), [P4D, TRN1], FULL),
        report_for_counters(counters(), FULL, instances=[P4D, TRN1]),
    ):
        text = text_of(report)
        assert (
            "Compile: on GPUs eager PyTorch compiles nothing; torch.compile's own time is not counted."
            in text
        )
        assert (
            "Compile: 1 large at an assumed 120 s" in text or "Compile: 2 large at an assumed 120 s" in text
        )


def test_a_cluster_that_aws_does_not_have_wins_nothing(counters: Any) -> None:
    """Two that train alone are named with the reason, and not modelled: nothing is cheapest among them."""
    described = windtunnel.Workload.transformer("BERT-Base", global_batch=1024)
    hosts = counters(instance_type=SMALL, instance_cores=2, instance_count=2)
    for report in (
        windtunnel.compare(described, [(SMALL, 2), (TRN1, 8)], FULL),
        report_for_counters(hosts, FULL, instances=[SMALL, P4D]),
    ):
        text = text_of(report)
        assert "NOT MODELLED, trn1.2xlarge x 2: ml.trn1.2xlarge has no EFA" in text
        assert report.comparison and SMALL not in {item.instance.name for item in report.comparison.estimates}
        assert not any(f"trn1.2xlarge{many} costs least" in text for many in ("", " x 2"))
    with pytest.raises(InvalidInput, match="no EFA"):
        windtunnel.compare(described, [(SMALL, 2)], FULL)


def test_what_does_not_fit_has_no_dollars_for_a_machine_either() -> None:
    """A limit on ``usd`` must not pass a job that no instance of this kind can run."""
    job = windtunnel.Workload.transformer("GPT3-175B", global_batch=64)
    report = windtunnel.compare(job, [SMALL, ("ml.p4d.24xlarge", 16)], windtunnel.FullScale(1000))
    small, large = report.to_dict()["answer"]["instances"]
    assert (small["fits"], small["usd"], small["interval_usd"], small["decided_usd"]) == (False, *[None] * 3)
    assert large["fits"] is True and large["usd"] > 0


def test_a_described_job_that_may_not_fit_is_named() -> None:
    """With the part of the memory that it needs. The first screen names no other instance there."""
    job = windtunnel.Workload.transformer("Llama-3.1-8B", global_batch=1024)
    report = windtunnel.compare(job, [TRN1, "ml.p4d.24xlarge", "ml.p5.48xlarge"], windtunnel.FullScale(1000))
    told = [part for part in text_of(report).split("· ") if part.startswith("TIGHT MEMORY")]
    parts = [item.memory.part for item in report.comparison.estimates if item.memory is not None]
    assert [part >= 0.9 for part in parts] == [True, True, False]
    assert len(told) == 1
    with_small = windtunnel.compare(job, [TRN1, "ml.g5.12xlarge"], windtunnel.FullScale(1000))
    assert "g5.12xlarge (" not in text_of(with_small).partition("TIGHT MEMORY")[2].partition("·")[0]
    assert f"trn1.32xlarge ({parts[0]:.0%}), p4d.24xlarge ({parts[1]:.0%}).".replace("%", " %") in told[0]


def test_a_batch_that_was_not_rehearsed_is_not_said_to_fit(counters: Any) -> None:
    """Unless what the fullest core held leaves room for it, however it grows. Of fewer samples nothing is said."""
    said = "Not known: whether a batch that was not rehearsed fits"
    rehearsed_bytes = counters()["device_memory_peak_bytes"]
    cases: tuple[tuple[BatchRule, int | None, bool], ...] = (
        (PerDevice(4_000_000), rehearsed_bytes, True),
        (PerDevice(16), rehearsed_bytes, False),
        (PerDevice(16), 10 * rehearsed_bytes, True),
        (PerDevice(16), None, True),
        ("rehearsed", rehearsed_bytes, False),
    )
    for rule, peak, unknown in cases:
        told = counters(device_memory_peak_bytes=peak)
        report = windtunnel.compare(told, [TRN1], FULL, batch=rule)
        assert (said in text_of(report)) == unknown, (rule, peak)
        assert report.to_dict()["answer"]["instances"][0]["fits"] is None


@pytest.mark.parametrize(("passes", "said"), [(None, "one pass"), (4, "4 passes")])
def test_a_batch_that_follows_from_the_microbatch_is_not_called_described(
    passes: int | None, said: str
) -> None:
    """It is another one on each instance: two trainings are compared."""
    for split, of in (
        ({}, "for each worker"),
        ({"tensor_parallel": 2}, "of each copy of the model"),
        (
            {"tensor_parallel": 2, "on_gpu": {"tensor_parallel": None}},
            "of each copy of the model (for each worker where no split is stated)",
        ),
    ):
        job = windtunnel.Workload.transformer(
            "BERT-Base", microbatch=8, gradient_accumulation=passes, **split
        )
        report = windtunnel.compare(job, [TRN1, P4D], FULL)
        assert len({item.global_batch for item in report.comparison.estimates}) == 2
        assert f"Batch: {said} {of}, so instances differ" in screen_of(report)


def test_passes_of_a_model_whose_split_is_found_are_those_of_its_workers() -> None:
    """Which copy makes how many of them is known only when the model is split."""
    job = windtunnel.Workload.transformer("Llama2-13B", microbatch=1)
    report = windtunnel.compare(job, [(TRN1, 4)], FULL)
    (found,) = report.comparison.estimates
    assert found.training is not None and found.training.microbatches == 8
    assert found.global_batch == 128
    assert "Batch: one pass for each worker, so instances differ" in screen_of(report)


def test_what_aws_trains_on_one_alone_is_said_wherever_there_are_more(counters: Any) -> None:
    """In the tables of other numbers, and in what would make a job shorter or fit."""
    report = windtunnel.compare(
        counters(instance_type=SMALL, instance_cores=2), [SMALL], FULL, scaling="weak"
    )
    text = text_of(report)
    assert text.count("NOT ON AWS: ml.trn1.2xlarge has no EFA") == 1
    assert "instances x 2: NOT ON AWS, ml.trn1.2xlarge has no EFA" in text
    assert "NOT ON AWS" not in text_of(windtunnel.compare(counters(), [TRN1], FULL, scaling="weak"))
    job = windtunnel.Workload.transformer("BERT-Base", sequence_length=128, global_batch=4096)
    assert "a larger instance shortens it" in text_of(windtunnel.compare(job, [SMALL], FULL))
    large = windtunnel.Workload.transformer("Llama2-70B", global_batch=64)
    unfit = windtunnel.compare(large, [SMALL], FULL).document().sections[0].notes[0]
    assert "A larger instance, a larger memory or shorter sequences may make it fit" in unfit


def test_adapters_are_said_where_trust_is() -> None:
    """On the first screen, in full and as data: the errors named there are of jobs that train all weights."""
    given: dict[str, Any] = {"sequence_length": 4096, "global_batch": 64, "zero": "full"}
    for rank, said in ((None, False), (16, True)):
        job = windtunnel.Workload.transformer("Llama-3.1-8B", lora_rank=rank, **given)
        report = windtunnel.compare(job, [TRN1, P4D, "ml.p5.48xlarge", "ml.g5.12xlarge"], FULL)
        assert (
            report.title
            == f"Llama-3.1-8B, {'LoRA of rank 16' if said else '8.03 G parameters'}, sequences of 4,096"
        )
        screen, data = screen_of(report), json.loads(report.to_json())
        assert ("8.03 G parameters, 41.9 M of adapters trained; " in screen) is said
        assert ("(with all weights trained; adapters are less sure)" in screen) is said
        assert ("LoRA of rank 16: all these rows train all weights" in text_of(report)) is said
        assert data["workload"]["lora"] == ({"rank": 16, "targets": "all-linear"} if said else None)


def test_what_waits_for_its_samples_is_on_the_first_screen() -> None:
    """Else nothing there would say why the loader decides."""
    job = windtunnel.Workload.transformer("ViT-Base", sequence_length=197, global_batch=2048)
    for rate, waits in ((60.0, True), (1e6, False)):
        size = FullScale(1_281_167, 90, loader_samples_per_s=rate)
        screen = screen_of(windtunnel.compare(job, [TRN1, P4D], size))
        assert ("Part of a step that waits for samples: " in screen) is waits


def test_a_timed_host_narrows_the_interval_and_the_words(counters: Any) -> None:
    """The ratio of the plain script that is printed is the one that sets the interval."""
    plain = counters()
    timed = counters()
    timed["train"]["least_trace_seconds"] = 0.001
    trn1 = CALIBRATIONS["trn1"]
    without, with_host = (text_of(windtunnel.compare(given, full_scale=FULL)) for given in (plain, timed))
    assert f"which took {trn1.outside_check:.1f} times what this model says." in without
    assert f"took {trn1.traced_check:.2f} times what this model says with the host's tracing" in with_host


def test_a_rehearsal_whose_steps_all_compiled_has_no_answer(counters: Any) -> None:
    """Its host was not measured. What a GPU launches was counted, so that costs there what it does in a timed one."""
    timed, untimed, nothing = counters(), counters(), counters()
    timed["train"] |= {"trace_seconds": 9.0, "least_trace_seconds": 0.05, "launches": 5000}
    untimed["train"] |= {"trace_seconds": 9.0, "least_trace_seconds": None, "launches": 5000}
    nothing["train"] |= {"trace_seconds": 0.0, "least_trace_seconds": None, "launches": None}
    whole, guessed, bare = (windtunnel.compare(each, full_scale=FULL) for each in (timed, untimed, nothing))
    assert "the host's part of a step was not measured" not in text_of(whole)
    for report in (guessed, bare):
        assert "No answer, as the host's part of a step was not measured" in text_of(report)
        answer = report.to_dict()["answer"]
        assert answer["obstacle"] == "host"
        assert all(item["probability_cheapest"] is None for item in answer["instances"])
        assert report.comparison.verdicts == ()
    (of_timed, of_guessed, of_bare) = (
        report.comparison.estimates[-1].step.host_s for report in (whole, guessed, bare)
    )
    assert of_timed == of_guessed > of_bare
    (on_trn1, on_gpu), (bare_trn1, _) = guessed.comparison.estimates, bare.comparison.estimates
    assert on_trn1.step.host_s > bare_trn1.step.host_s
    assert not on_gpu.instance.is_neuron


def test_the_precision_behind_the_answer_is_in_the_answer(counters: Any) -> None:
    """A p4d in TF32 is a choice of the script, not what PyTorch does by itself; auto-cast is one of a flag."""
    answer = windtunnel.compare(counters(), full_scale=FULL).document().sections[0]
    assert [row.label for row in answer.rows] == ["trn1.32xlarge, auto-cast bf16", "p4d.24xlarge, TF32"]
    assert "With the GPU script in fp32: trn1.32xlarge" in answer.notes[0]
    job = windtunnel.Workload.transformer("BERT-Large", global_batch=1024, dtype="fp32")
    for open_, end in (
        (job, ", TF32"),
        (job.changed(matmul_dtype="tf32"), ""),
        (job.changed(dtype="bf16"), ""),
    ):
        (row,) = windtunnel.compare(open_, [P4D], FULL).document().sections[0].rows
        assert row.label == f"p4d.24xlarge{end}"


@pytest.mark.parametrize("batch", [16, 1024])
def test_more_instances_are_advised_where_they_would_have_samples(batch: int) -> None:
    """On twice as many, copies of the model would have half a sequence each."""
    job = windtunnel.Workload.transformer("Llama2-7B", global_batch=batch, microbatch=1)
    report = windtunnel.compare(job, [("ml.p4d.24xlarge", 4)], FULL)
    most = report.screen.largest[0]
    assert most.startswith("compute, ")
    assert most.endswith("; more instances shorten it.") == (batch > 16)
    assert most.endswith("; with a larger batch more instances shorten it.") == (batch == 16)


@pytest.mark.parametrize("split", [True, False])
def test_what_is_shared_already_is_not_advised(split: bool) -> None:
    """Workers that evaluate all of it, each, may share it."""
    job = windtunnel.Workload.transformer("BERT-Large", global_batch=1024)
    size = FullScale(1_000_000, evaluation_samples=10_000_000, evaluation_split=split)
    (told,) = [text for text in windtunnel.compare(job, [P4D], size).screen.largest if "evaluation" in text]
    assert ("share the samples among the workers" in told) == (not split)


def test_a_description_is_said_to_be_a_tuned_job() -> None:
    """Its interval is that of benchmarks; what a plain script took is named, as it lies outside."""
    text = text_of(windtunnel.compare(giant(), full_scale=FULL, instance_count=16))
    assert f"took {CALIBRATIONS['trn1'].outside_check:.1f} times what its counts say" in text


def test_times_side_by_side_have_one_unit() -> None:
    """8.8 h above 9,000 s is read as the shorter; and a family's name is its largest type, as for a plan."""
    llama = windtunnel.Workload.transformer(
        "Llama-3.1-8B", sequence_length=4096, global_batch=128, lora_rank=16
    )
    report = windtunnel.compare(llama, ["trn1", ("trn2", 1), "p4d"], FullScale(200_000, sequence_length=4096))
    seconds = [item.billable_s for item in report.comparison.estimates]
    assert min(seconds) < HOURS_FROM_S < max(seconds)
    rows = report.document().sections[0].rows
    assert all(" h (" in row.cells[1] and row.cells[1].endswith(" h)") for row in rows)
    assert [item.name for item in report.comparison.estimates] == [
        "ml.trn1.32xlarge", "ml.trn2.48xlarge", "ml.p4d.24xlarge",
    ]  # fmt: skip
    scaled = windtunnel.scaling(llama, "trn1", (1, 2), full_scale=FullScale(200_000, sequence_length=4096))
    assert scaled.scaling.name == "ml.trn1.32xlarge"


def test_how_far_to_trust_it_is_not_cut_to_half_a_sentence() -> None:
    """Four instances with a split each fill the screen: the batches lose a line before the trust loses its second."""
    llama = windtunnel.Workload.transformer("Llama-3.1-8B", sequence_length=4096, global_batch=128)
    book = PriceBook().stating({"ml.p5.48xlarge": 55.04, "ml.trn2.48xlarge": 40.0}, date(2026, 1, 1))
    size = FullScale(200_000, sequence_length=4096)
    report = windtunnel.compare(llama, ["trn1", "trn2", "p4d", "p5"], size, prices=book)
    section = report.document().sections[0]
    (trust,) = [note for note in section.notes if note.startswith("Trust: ")]
    assert "on p5 (H100) on average" in trust
    assert len(report.to_text().splitlines()) <= LINES


def test_a_size_that_the_rehearsal_could_not_tell_has_no_answer() -> None:
    """As in the report of the job: its few steps are not the job. What is stated is."""
    open_ = replace(rehearsed(), found="the loader of train.py:9 does not tell its length", samples=3_000_000)
    report = windtunnel.compare(open_, [TRN1, P4D])
    assert report.to_dict()["answer"]["obstacle"] == "size" and not report.comparison.verdicts
    assert "exactly what was rehearsed: 3,000,000 samples" in str(report)
    assert "None of this names a winner: the size of the whole job" in report.to_text(full=True)
    offers = next(part for part in report.document().sections if part.title == "Ways to buy the hour")
    assert {row.cells[-1] for row in offers.rows} == {"-"}
    assert report.to_dict()["full_scale"]["train_samples"] == 3_000_000
    assert windtunnel.compare(open_, [TRN1, P4D], LONG).to_dict()["answer"]["obstacle"] is None


def test_the_data_tell_two_numbers_of_one_instance_apart() -> None:
    """By a name alone nobody knew which of them costs least."""
    data = windtunnel.compare(rehearsed(), [(TRN1, 1), (TRN1, 4), "ml.trn1n.32xlarge"], LONG).to_dict()
    assert data["answer"]["winner_instance_count"] == 1
    assert {change["cheapest_instance_count"] for change in data["sensitivity"]} >= {1, 4}
    last = data["decisions"][-1]
    assert (last["cheapest"], last["cheapest_instance_count"]) == (TRN1, 1)
    assert [item["instance_count"] for item in last["instances"]] == [1, 4, 1]
    against = [item["break_even"] and item["break_even"]["against"] for item in last["instances"]]
    assert against == ["ml.trn1n.32xlarge", None, TRN1]  # what both pay for an hour turns nothing
    assert last["instances"][2]["break_even"]["against_instance_count"] == 1
