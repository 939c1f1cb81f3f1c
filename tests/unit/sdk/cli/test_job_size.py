"""The size of the whole job: what the options leave out stays as the rehearsal found it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.reports import CountedJob, screen_of
from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService
from windtunnel.priceperf import FullScale
from windtunnel.reports.for_job import report_for_job

TRAINS = {
    "line": "train.py:9", "batches": 5000, "samples": 8, "passes": 3, "taken": 16, "trains": True, "split": True,
    "sequence_length": 128,
}  # fmt: skip
EVALUATES = {"line": "train.py:20", "batches": 50, "samples": 8, "passes": 3, "taken": 3, "split": True}
SHORT = {"rehearsed_steps": 16, "loaders": [TRAINS, EVALUATES]}
FOUND = {"train_samples": 80_000, "epochs": 3, "evaluation_samples": 800, "sequence_length": 128}


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (("--compile-cached",), {"compile_cached": True}),
        (("--samples", "3.6M"), {"train_samples": 3_600_000}),
        (("--epochs", "2", "--preparation-seconds", "60"), {"epochs": 2, "preparation_s": 60}),
        (("--evaluation-samples", "0"), {"evaluation_samples": 0}),
    ],
)
def test_what_a_short_rehearsal_found_stays(
    rehearsal: Callable[[Any], None],
    counters_file: Callable[[Any], str],
    invoke: Invoke,
    counters: Any,
    words: tuple[str, ...],
    changed: Any,
) -> None:
    """In the comparison of its counters, and in the report of the job."""
    counted = counters(input=SHORT)
    rehearsal(counted)
    for command in (("compare", counters_file(counted)), ("report", "j")):
        data = json.loads(invoke(*command, *words, "--json").out)
        size = data.get("full_scale") or data["modelled"]["full_scale"]
        assert {name: size[name] for name in (*FOUND, *changed)} == {**FOUND, **changed}


def test_a_comparison_fetches_the_counters_of_a_job_once(
    jobs: FakeService,
    rehearsal: Callable[[Any], None],
    invoke: Invoke,
    counters: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Although the options of the size read them too; its title is the job's name."""
    rehearsal(counters(input=SHORT))
    fetched: list[str] = []
    get = jobs.get_object

    def counted(bucket: str, key: str, out: Any) -> bool:
        fetched.append(key)
        return get(bucket, key, out)

    monkeypatch.setattr(jobs, "get_object", counted)
    assert json.loads(invoke("compare", "j", "--epochs", "2", "--json").out)["title"] == "j"
    assert len([key for key in fetched if key.endswith("counters.json")]) == 1


SHORT_ONE = {**SHORT, "loaders": [TRAINS, {**EVALUATES, "split": False}]}


@pytest.mark.parametrize("seen", [SHORT, SHORT_ONE, None])
@pytest.mark.parametrize(
    "given",
    [
        {"train_samples": 2_000_000},
        {"train_samples": 2_000_000, "epochs": 10},
        {"train_samples": 2_000_000, "evaluation_samples": 0},
        {"train_samples": 2_000_000, "evaluation_samples": 9000, "sequence_length": 256},
        {"train_samples": 2_000_000, "evaluation_split": False, "compile_cached": True},
    ],
)
def test_python_and_the_command_line_know_one_size(
    rehearsal: Callable[[Any], None], invoke: Invoke, counters: Any, seen: Any, given: dict[str, Any]
) -> None:
    """What `FullScale` does not give is as the rehearsal found it, short or whole; 0 evaluated is given too."""
    counted = counters() if seen is None else counters(input=seen)
    rehearsal(counted)
    words = [
        word
        for name, value in given.items()
        for word in (
            {"evaluation_split": ["--evaluation-not-split"], "compile_cached": ["--compile-cached"]}.get(name)
            or [f"--{'samples' if name == 'train_samples' else name.replace('_', '-')}", str(value)]
        )
    ]
    report = report_for_job(CountedJob(counted, TrainingJobName="j"), FullScale(**given))
    data = json.loads(json.dumps(report.to_dict()))
    said = json.loads(invoke("report", "j", *words, "--json").out)
    assert said["modelled"] == data["modelled"] and said["answer"] == data["answer"]
    whole = {"epochs": 1, "evaluation_samples": 160, "sequence_length": None}
    short = {**FOUND, "evaluation_samples": 800 if seen is SHORT else 400, "evaluation_split": seen is SHORT}
    known = {**(whole if seen is None else short), **given}
    size = data["modelled"]["full_scale"]
    assert {name: size[name] for name in known} == known


def test_the_size_that_ran_is_the_same_when_it_is_stated(counters: Any) -> None:
    """And the evaluation of what may be a sample is named as such."""
    job = CountedJob(counters(), TrainingJobName="j")
    for stated in (None, FullScale(train_samples=1600)):
        size = report_for_job(job, stated).to_dict()["answer"]["instances"][0]
        assert size == report_for_job(job).to_dict()["answer"]["instances"][0]
    assert "3,600,000 samples x 1 epoch, 160 evaluated an epoch, as rehearsed" in screen_of(
        report_for_job(job, FullScale(train_samples=3_600_000))
    )


def test_a_sample_that_ran_whole_says_nothing_of_an_epoch(
    invoke: Invoke, counters_file: Callable[[Any], str], counters: Any
) -> None:
    """What is not of an epoch needs no number of samples; its evaluation stays, if none is given."""
    path = counters_file(counters())
    data = json.loads(invoke("compare", path, "--compile-cached", "--json").out)
    assert data["full_scale"]["train_samples"] == 1600 and data["full_scale"]["evaluation_samples"] == 160
    data = json.loads(invoke("compare", path, "--samples", "3.6M", "--json").out)
    assert data["full_scale"]["evaluation_samples"] == 160
    for words in (("--epochs", "3"), ("--evaluation-samples", "9"), ("--evaluation-not-split",)):
        said = invoke("compare", path, *words, exits=2).err
        assert "need --full-scale-samples N" in said


def test_a_job_without_counters_is_asked_for_no_size(jobs: FakeService, invoke: Invoke) -> None:
    """It needs none to be told that nothing is modelled."""
    invoke("run", "src/train.py", "--job-name", "j")
    assert "has no counters" in invoke("report", "j", "--compile-cached", exits=1).err
    assert "No answer: the job left no counters" in invoke("report", "j", "--samples", "9").out


def test_a_size_that_was_not_found_is_asked_for(
    invoke: Invoke, counters_file: Callable[[Any], str], counters: Any
) -> None:
    """No option makes it known but the number of samples."""
    path = counters_file(counters(input={"rehearsed_steps": 16, "loaders": [{**TRAINS, "batches": None}]}))
    assert "need --full-scale-samples N" in invoke("compare", path, "--compile-cached", exits=2).err
    data = json.loads(invoke("compare", path, "--samples", "9999", "--compile-cached", "--json").out)
    assert data["full_scale"]["train_samples"] == 9999 and data["answer"]["obstacle"] != "size"
