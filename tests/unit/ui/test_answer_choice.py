"""What a reader of the answer may choose: whatever an address says, it is read or called wrong beside its field."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.reports import report_for_counters
from tests.fakes.split_job import split_counters
from windtunnel.priceperf import FP32, FullScale, PerDevice
from windtunnel.priceperf.model.precision import GPU_SCRIPTS
from windtunnel.priceperf.workload.rehearsed import RehearsedJob
from windtunnel.reports.for_job import report_for_job
from windtunnel.reports.job.report import Precisions, PricePerformance
from windtunnel_local.ui.answer.choice import (
    BATCHES,
    FIELDS,
    MODELLED,
    OFFERINGS,
    TRN_PRECISIONS,
    Choice,
    read,
)
from windtunnel_local.ui.answer.exports import COLUMNS, csv_text
from windtunnel_local.ui.answer.figures import bars, scaled
from windtunnel_local.ui.job_outputs import Ended

DESCRIBED: dict[str, Any] = {"TrainingJobName": "bert", "TrainingJobStatus": "Completed"}
NUMBERS = st.one_of(
    st.integers(-3, 10**6).map(str),
    st.sampled_from(
        ["1e6", "1e15", "1e16", "1e400", "nan", "-0", "0.5", "9" * 29, "9" * 5000, "1,000", "٣", ""]
    ),
)
ANY_TEXT = st.text(max_size=12)
FILLED = {
    "instance": st.sampled_from(MODELLED),
    "nodes": NUMBERS,
    "batch": st.sampled_from(tuple(BATCHES)),
    "size": NUMBERS,
    "samples": NUMBERS,
    "epochs": NUMBERS,
    "evaluation": NUMBERS,
    "preparation": NUMBERS,
    "loader": NUMBERS,
    "on": st.one_of(st.dates().map(str), st.sampled_from(["2025-06-01", "0001-01-01", "9999-12-31"])),
    "offering": st.sampled_from(tuple(OFFERINGS)),
    "discount": NUMBERS,
    "trn": st.sampled_from(tuple(TRN_PRECISIONS)),
    "gpu": st.sampled_from(tuple(GPU_SCRIPTS)),
    "scaling": st.sampled_from(["strong", "weak"]),
}
ONE = st.sampled_from(FIELDS).flatmap(
    lambda name: st.tuples(st.just(name), st.one_of(FILLED[name], FILLED[name], FILLED[name], ANY_TEXT))
)
QUERIES = st.lists(st.one_of(ONE, ONE, ONE, st.tuples(ANY_TEXT, ANY_TEXT)), max_size=9)


def report(counters: Any, choice: Choice) -> PricePerformance:
    """As the page asks for it."""
    return report_for_job(
        Ended(DESCRIBED, counters),
        choice.full_scale,
        instances=choice.instances or None,
        batch=choice.batch,
        prices_on=choice.on,
        instance_count=choice.nodes,
        offering=choice.offering,
        discount=choice.discount,
        precisions=Precisions(choice.trn, choice.gpu),
        user_calibration=None,
    )


def test_a_query_is_a_choice() -> None:
    """Each field, in the forms that people write."""
    form = read(
        [
            ("instance", "ml.trn1.32xlarge"), ("instance", "ml.p4d.24xlarge"), ("instance", "ml.p4d.24xlarge"),
            ("nodes", " 4 "), ("batch", "each"), ("size", "64"), ("samples", "3.6e6"), ("epochs", "1_000"),
            ("evaluation", "40,000"), ("on", "2025-06-01"), ("offering", "SageMaker managed spot"),
            ("discount", "65 %"),
            ("trn", "fp32"), ("scaling", "weak"), ("foreign", "x"), ("preparation", "600.5"), ("loader", "60"),
        ]
    )  # fmt: skip
    assert form.errors == {}
    assert form.choice == Choice(
        instances=("ml.trn1.32xlarge", "ml.p4d.24xlarge"),
        nodes=4,
        batch=PerDevice(64),
        full_scale=FullScale(3_600_000, 1000, 40_000, preparation_s=600.5, loader_samples_per_s=60),
        on=date(2025, 6, 1),
        offering="SageMaker managed spot",
        discount=0.65,
        trn=FP32,
        mode="weak",
    )
    assert "foreign" not in form.given
    assert read([]).choice == read([("preparation", "0"), ("loader", "0")]).choice == Choice()


def test_what_a_rehearsal_has_found_need_not_be_filled_in() -> None:
    """As on the command line: the other fields change only what they say."""
    found = FullScale(80_000, 3, 800, sequence_length=128)
    job = RehearsedJob("ml.trn1.2xlarge", 1, 256, found=found)
    for query, changed in (
        ([("epochs", "2")], {"epochs": 2}),
        ([("samples", "9"), ("loader", "60")], {"train_samples": 9, "loader_samples_per_s": 60.0}),
    ):
        choice = read(query, job).choice
        assert choice is not None and choice.full_scale == replace(found, **changed)
    unknown = replace(job, found="the loader does not tell its length")
    assert "How many" in read([("epochs", "2")], unknown).errors["samples"]


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ({"nodes": "0"}, "nodes", "no whole number from 1"),
        ({"nodes": "1.5"}, "nodes", "no whole number"),
        ({"samples": "-1"}, "samples", "no whole number"),
        ({"samples": "1e16"}, "samples", "at most"),
        ({"epochs": "2"}, "samples", "How many"),
        ({"loader": "60"}, "samples", "How many"),
        ({"samples": "9", "loader": "-1"}, "loader", "no number from 0"),
        ({"samples": "9", "preparation": "an hour"}, "preparation", "no number from 0"),
        ({"batch": "total"}, "size", "How many"),
        ({"batch": "all"}, "batch", "none of"),
        ({"on": "yesterday"}, "on", "no day"),
        ({"offering": "SageMaker managed spot"}, "discount", "State the discount"),
        ({"offering": "SageMaker savings plan", "discount": "65"}, "discount", "at most 64"),
        ({"offering": "gift"}, "offering", "none of"),
        ({"instance": "ml.p9.big"}, "instance", "none of those"),
        ({"instance": "ml.inf2.xlarge"}, "instance", "none of those"),
        ({"gpu": "int8"}, "gpu", "none of"),
    ],
)
def test_what_is_wrong_is_said_of_its_field(query: dict[str, str], field: str, words: str) -> None:
    """And what was filled in stays as it was."""
    form = read(list(query.items()))
    assert words in form.errors[field]
    assert form.choice is None
    assert form.given.items() <= query.items()


@settings(max_examples=300)
@given(query=QUERIES)
def test_no_query_breaks_the_form(query: list[tuple[str, str]]) -> None:
    """Every message belongs to a field, and a form without one has a choice."""
    form = read(query)
    assert set(form.errors) <= set(FIELDS)
    assert (form.choice is None) == bool(form.errors)


@settings(max_examples=60)
@given(query=QUERIES)
def test_no_choice_breaks_the_report(counters: Any, query: list[tuple[str, str]]) -> None:
    """What cannot be answered is refused as the SDK refuses it, with a sentence; everything else is drawn."""
    form = read(query)
    if form.choice is None:
        return
    try:
        found = report(counters(), form.choice)
    except ValueError:
        return
    assert found.document().sections[0].first
    for drawn in bars(found):
        assert len(drawn.rows) >= 1
    assert len(csv_text(found).splitlines()) >= 2


def test_bars_say_what_the_report_says(counters: Any) -> None:
    """Costs in the order of the answer, with its figures; the cheapest is marked; break-evens as in its table."""
    found = report(counters(), Choice(full_scale=FullScale(36_000_000)))
    cost, time, even = bars(found)
    text = found.to_text(full=True)
    for row in (*cost.rows, *time.rows):
        assert row.figure in text
        assert "style" not in row.bar
    assert cost.title.endswith("2025-06-01")
    assert [row.name for row in even.rows] == ["trn1.32xlarge", "p4d.24xlarge"]
    assert even.rows[0].more == "$24.73; against p4d.24xlarge"


def test_charts_of_scaling_tell_lines_without_colour(counters: Any) -> None:
    """Each with a form of its own, all points in words, and nothing where nothing runs."""
    from windtunnel.reports.comparison.scaling import scaling

    tables = [scaling(counters(), name, user_calibration=None).scaling for name in MODELLED]
    drawn = scaled(tables)
    assert len(drawn.keys) == len(MODELLED)
    assert "on 1: " in drawn.charts[0][1]
    assert "style=" not in drawn.charts[0][1] + drawn.charts[1][1]
    assert len({str(key) for key, _ in drawn.keys[:6]}) == 6


def test_what_does_not_fit_has_no_dollars_in_a_table_either() -> None:
    """Sorted by cost it would come first: half the memory, and a price to match."""
    found = report_for_counters(split_counters(), instances=["ml.trn1.32xlarge", "ml.trn1.2xlarge"])
    for row in csv.DictReader(io.StringIO(csv_text(found))):
        fits = row["instance_type"] == "ml.trn1.32xlarge"
        assert (row["fits"], bool(row["usd"]), bool(row["low_usd"])) == (str(fits), fits, fits)
        assert row["usd_per_hour"]


def test_csv_has_each_figure_of_the_report(counters: Any) -> None:
    """A row an instance and a day of prices."""
    found = report(counters(), Choice())
    rows = list(csv.DictReader(io.StringIO(csv_text(found))))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["instance_type"], row["prices_on"]) for row in rows] == [
        ("ml.trn1.32xlarge", "2022-10-10"),
        ("ml.trn1.32xlarge", "2025-06-01"),
        ("ml.p4d.24xlarge", "2022-10-10"),
        ("ml.p4d.24xlarge", "2025-06-01"),
    ]
    estimate = found.to_dict()["modelled"]["estimates"][1]
    assert float(rows[3]["usd"]) == estimate["costs"][1]["usd"]
    assert float(rows[3]["usd_per_hour"]) == 25.251286
