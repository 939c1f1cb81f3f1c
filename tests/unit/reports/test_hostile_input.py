"""Files that were edited or damaged: one clear message or a true report, never a traceback or a wrong figure."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.descriptions import described
from tests.fakes.reports import report_for_counters
from tests.unit.conftest import Invoke
from windtunnel.errors import ConfigurationError
from windtunnel.priceperf import CALIBRATIONS, FullScale, InvalidCounters, InvalidInput, Workload
from windtunnel.priceperf.calibration.corrections import fingerprint
from windtunnel.priceperf.money.offerings import EC2_ON_DEMAND, TRAINING_ON_DEMAND
from windtunnel.prices import cache
from windtunnel.prices.aws_price_list import ListedPrice
from windtunnel.reports.aws_job.description import DescribedJob
from windtunnel.reports.comparison.report import compare
from windtunnel.reports.for_job import report_for_job
from windtunnel.user_calibration import CalibrationStore

HUGE = 10**400
FULL = FullScale(train_samples=1000)


def _changed(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = document
    for key in path[:-1]:
        found = found.setdefault(key, {})
    found[path[-1]] = value
    return document


@pytest.mark.parametrize("cached", ["x", float("nan"), float("inf"), [1], -1])
def test_a_damaged_count_of_cached_graphs_is_named(counters: Any, cached: Any) -> None:
    """It decides the compile time."""
    given = counters()
    given["graphs"].update(ledger=[{"flops": {"fp32": 1e9}}], cached=cached)
    with pytest.raises(InvalidCounters, match=r"graphs\.cached"):
        Workload.from_counters(given)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("job",), float("nan")),
        (("train", "seconds"), float("nan")),
        (("train", "seconds"), HUGE),
        (("train", "seconds"), 5e-324),
        (("train", "collective_seconds"), float("inf")),
        (("instance_cores",), "x"),
        (("seconds", "training_total"), "x"),
        (("instance_groups",), [{"instance_type": 5}]),
        (("diagnostics",), [None]),
        (("diagnostics",), 5),
        (("diagnostics",), [{"kind": "k", "seconds": float("nan"), "count": "x"}]),
        (("other", "samples"), 1e-300),
        (("graphs", "ledger"), "x"),
        (("graphs", "ledger"), [{"flops": {}, "compile_seconds": "x", "runs": float("inf")}]),
    ],
)
def test_what_is_only_shown_is_left_out_where_it_is_no_figure(
    counters: Any, path: tuple[str, ...], value: Any
) -> None:
    """Text and JSON, which knows no NaN."""
    report = report_for_counters(_changed(counters(), path, value), FULL)
    assert not {"nan", "unbounded"} & set(report.to_text(full=True).split())

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(report.to_json(), parse_constant=refuse)


def test_a_jobs_name_is_shown_and_not_obeyed(counters: Any) -> None:
    """Neither by the terminal and rich nor by a browser."""
    name = "[/red] [bold]x[/bold] \x1b[31mred a\ud800b <script>x</script>"
    report = compare({**counters(), "job": name}, None, FULL)
    text, page = str(report), report.to_html()
    assert name.encode("unicode_escape").decode() in text
    assert "\x1b" not in text + page and "<script" not in page
    page.encode()


def test_a_finding_is_shown_and_not_obeyed(counters: Any) -> None:
    """A script can write its own counters."""
    odd = "a\x1b[31m\x9b\u202e\ud800b"
    members = ("severity", "line", "message", "advice")
    given = counters(diagnostics=[{"severity": "warning", member: f"{member}:{odd}"} for member in members])
    given["programs"] = [{"script": "a\x1b[2Jb", "steps": 1}, {"script": "c", "steps": 1}]
    report = report_for_counters(given, FULL)
    text, page = report.to_text(full=True), report.to_html()
    for member in members:
        assert rf"{member}:a\x1b[31m\x9b\u202e\ud800b" in text, member
    assert r"a\x1b[2Jb" in text
    assert not {"\x1b", "\x9b", "\u202e", "\ud800"} & set(text + page)
    (text + page).encode()


@pytest.mark.parametrize("member", ["batches", "samples", "passes", "left_after", "bound_of_pass"])
def test_a_loader_that_trains_and_holds_nothing_tells_no_size(counters: Any, member: str) -> None:
    """The length of a loader is what the script's own class says."""
    loader = {"line": "t.py:3", "batches": 9, "samples": 8, "passes": 1, "taken": 9, "trains": True}
    given = counters(input={"rehearsed_steps": 16, "loaders": [{**loader, member: 0}]})
    said = str(report_for_counters(given))
    assert "No answer, as the size of the whole job is not known" in said and "holds nothing" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["COUNTERS", "--nodes", str(10**30)],
        ["COUNTERS", "--full-scale-samples", str(10**30)],
        ["COUNTERS", "--full-scale-samples", "1000", "--preparation-seconds", "1e308"],
        ["COUNTERS", "--full-scale-samples", "1000", "--loader-samples-per-second", "1e-308"],
        ["COUNTERS", "--instances", "ml.trn1.32xlarge=²"],
        ["--architecture", "Llama2-7B", "--microbatch", "0"],
        ["--architecture", "Llama2-7B", "--gpu", "microbatch=x"],
        ["--architecture", "Llama2-7B", "--global-batch", str(10**30)],
    ],
)
def test_wrong_numbers_are_said_in_a_line(
    counters: Any, tmp_path: Path, invoke: Invoke, arguments: list[str]
) -> None:
    """What would leave the range of numbers, and what is none."""
    file = tmp_path / "counters.json"
    file.write_text(json.dumps(counters()))
    given = [str(file) if word == "COUNTERS" else word for word in arguments]
    if "--architecture" in given:
        given += ["--sequence-length", "4096", "--full-scale-samples", "1000"]
    said = invoke("compare", *given, exits=2)
    assert not said.out and len(said.err.splitlines()) == 1 and len(said.err) < 300
    assert "invalid literal" not in said.err


@pytest.mark.parametrize("value", [HUGE, 1e300, float("nan"), float("inf"), -1, "5"])
def test_a_size_that_is_none_is_refused(value: Any) -> None:
    """By its name."""
    with pytest.raises(InvalidInput, match="train_samples"):
        FullScale(train_samples=value)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("SecondaryStatusTransitions",), 5, "SecondaryStatusTransitions"),
        (("SecondaryStatusTransitions",), [None], "SecondaryStatusTransitions"),
        (("ResourceConfig",), "x", "ResourceConfig"),
        (("ResourceConfig", "InstanceCount"), "x", "InstanceCount"),
        (("ResourceConfig", "InstanceCount"), 0, "InstanceCount"),
        (("WarmPoolStatus",), [1], "WarmPoolStatus"),
        (("Environment",), "x", "Environment"),
        (("BillableTimeInSeconds",), "x", "BillableTimeInSeconds"),
        (("BillableTimeInSeconds",), -1, "BillableTimeInSeconds"),
        (("TrainingTimeInSeconds",), float("nan"), "TrainingTimeInSeconds"),
        (("TrainingStartTime",), "0001-01-01T00:00:00+14:00", "TrainingStartTime"),
    ],
)
def test_a_damaged_description_names_the_field(path: tuple[Any, ...], value: Any, field: str) -> None:
    """Of a bill and of a prediction alike."""
    with pytest.raises(ConfigurationError, match=field):
        str(report_for_job(DescribedJob(_changed(described(), path, value))))


ENTRY = ListedPrice(
    "ml.trn1.32xlarge",
    "us-east-1",
    TRAINING_ON_DEMAND,
    "23.5",
    "2026-11-01T00:00:00Z",
    "2026-11-21T12:00:00Z",
    "S",
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("instance_type", None),
        ("instance_type", "trn1.32xlarge"),
        ("region", 5),
        ("offering", EC2_ON_DEMAND),
        ("usd_per_hour", True),
        ("usd_per_hour", "1e308"),
        ("region", "us-east-1\x1b[31m"),
        ("effective_date", "2999-01-01T00:00:00Z"),
    ],
)
def test_a_damaged_price_file_is_said_and_not_used(tmp_path: Path, field: str, value: Any) -> None:
    """The built-in book serves, and the note says why."""
    entries = [{**vars(ENTRY), field: value}, vars(ENTRY)]
    (tmp_path / cache.FILE).write_text(json.dumps({"schema": cache.SCHEMA, "prices": entries}))
    loaded = cache.load(tmp_path)
    assert loaded.path is None and "cannot be read" in loaded.notes[0]
    assert loaded.book.price("ml.trn1.32xlarge").status == "published"


def test_prices_of_the_future_are_said(tmp_path: Path) -> None:
    """A clock that was wrong once would otherwise decide the price for years."""
    document = {
        "schema": cache.SCHEMA,
        "prices": [{**vars(ENTRY), "fetched_at": "2999-01-01T00:00:00Z"}],
    }
    (tmp_path / cache.FILE).write_text(json.dumps(document))
    assert "AHEAD OF TODAY" in cache.load(tmp_path, today=date(2026, 11, 22)).notes[0]


@pytest.mark.parametrize(
    "change",
    [
        {"job": None},
        {"job": ""},
        {"instance_type": "x"},
        {"instance_type": 5},
        {"workload": []},
        {"instance_count": "x"},
        {"modelled_s": 1e-300},
        {"real_s": 1e300, "real_high_s": 1e300},
    ],
)
def test_a_damaged_calibration_is_refused_by_its_name(
    counters: Any, tmp_path: Path, change: dict[str, Any]
) -> None:
    """It multiplies every figure of a report."""
    entry = {
        "job": "j",
        "on": "2026-01-01",
        "instance_type": "ml.trn1.32xlarge",
        "instance_count": 1,
        "workload": "w",
        "model": fingerprint(CALIBRATIONS["trn1"]),
        "modelled_s": 100.0,
        "real_s": 150.0,
        "real_low_s": 140.0,
        "real_high_s": 160.0,
    }
    file = tmp_path / "calibration.json"

    def kept(*entries: dict[str, Any]) -> CalibrationStore:
        file.write_text(json.dumps({"schema": "windtunnel.user_calibration/1", "jobs": entries}))
        return CalibrationStore(file)

    assert compare(counters(), None, FULL, user_calibration=kept(entry)).notes
    for entries in ([{**entry, **change}], [entry, entry]):
        with pytest.raises(ConfigurationError, match=str(file)):
            compare(counters(), None, FULL, user_calibration=kept(*entries))
