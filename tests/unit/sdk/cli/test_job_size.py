"""The size of the whole job: what the options leave out stays as the rehearsal found it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.counters import counters
from tests.unit.conftest import Invoke
from tests.unit.sdk.fake_service import FakeService

__all__ = ["counters"]

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
    jobs: FakeService, invoke: Invoke, tmp_path: Path, counters: Any, words: tuple[str, ...], changed: Any
) -> None:
    """In the comparison of its counters, and in the report of the job."""
    counted = json.dumps(counters(input=SHORT))
    (tmp_path / "counters.json").write_text(counted)
    invoke("run", "src/train.py", "--job-name", "j")
    jobs.store("j", "windtunnel/counters.json", counted.encode())
    for command in (("compare", str(tmp_path / "counters.json")), ("report", "j")):
        data = json.loads(invoke(*command, *words, "--json").out)
        size = data.get("full_scale") or data["modelled"]["full_scale"]
        assert {name: size[name] for name in (*FOUND, *changed)} == {**FOUND, **changed}


def test_a_comparison_fetches_the_counters_of_a_job_once(
    jobs: FakeService, invoke: Invoke, counters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the options of the size read them too; its title is the job's name."""
    invoke("run", "src/train.py", "--job-name", "j")
    jobs.store("j", "windtunnel/counters.json", json.dumps(counters(input=SHORT)).encode())
    fetched: list[str] = []
    get = jobs.get_object

    def counted(bucket: str, key: str, out: Any) -> bool:
        fetched.append(key)
        return get(bucket, key, out)

    monkeypatch.setattr(jobs, "get_object", counted)
    assert json.loads(invoke("compare", "j", "--epochs", "2", "--json").out)["title"] == "j"
    assert len([key for key in fetched if key.endswith("counters.json")]) == 1


def test_a_sample_that_ran_whole_says_nothing_of_an_epoch(
    invoke: Invoke, tmp_path: Path, counters: Any
) -> None:
    """What is not of an epoch needs no number of samples; an evaluation is that of the sample, not of the job."""
    path = tmp_path / "counters.json"
    path.write_text(json.dumps(counters()))
    data = json.loads(invoke("compare", str(path), "--compile-cached", "--json").out)
    assert data["full_scale"]["train_samples"] == 1600 and data["full_scale"]["evaluation_samples"] == 160
    data = json.loads(invoke("compare", str(path), "--samples", "3.6M", "--json").out)
    assert data["full_scale"]["evaluation_samples"] == 0
    for words in (("--epochs", "3"), ("--evaluation-samples", "9"), ("--evaluation-not-split",)):
        said = invoke("compare", str(path), *words, exits=2).err
        assert "need --full-scale-samples N" in said


def test_a_job_without_counters_is_asked_for_no_size(jobs: FakeService, invoke: Invoke) -> None:
    """It needs none to be told that nothing is modelled."""
    invoke("run", "src/train.py", "--job-name", "j")
    assert "has no counters" in invoke("report", "j", "--compile-cached", exits=1).err
    assert "No answer: the job left no counters" in invoke("report", "j", "--samples", "9").out


def test_a_size_that_was_not_found_is_asked_for(invoke: Invoke, tmp_path: Path, counters: Any) -> None:
    """No option makes it known but the number of samples."""
    path = tmp_path / "counters.json"
    path.write_text(
        json.dumps(counters(input={"rehearsed_steps": 16, "loaders": [{**TRAINS, "batches": None}]}))
    )
    assert "need --full-scale-samples N" in invoke("compare", str(path), "--compile-cached", exits=2).err
    data = json.loads(invoke("compare", str(path), "--samples", "9999", "--compile-cached", "--json").out)
    assert data["full_scale"]["train_samples"] == 9999 and data["answer"]["obstacle"] != "size"
