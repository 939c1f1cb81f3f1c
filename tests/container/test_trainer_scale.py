"""A short rehearsal of transformers' Trainer tells the size of the whole job."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from conftest import records

sys.path.append(str(Path(__file__).resolve().parents[2] / "sdk"))
from windtunnel.priceperf.workload.counted_input import Input, Loader
from windtunnel.priceperf.workload.found_scale import found_scale

WORKERS, STEPS = 2, 3
TRAIN, HELD_OUT = 4000, 320  # as in scripts/trainer.py, with batches of 8 a worker


@pytest.mark.parametrize(
    ("settings", "samples", "epochs", "evaluated"),
    [
        ({"num_train_epochs": 3, "eval_strategy": "epoch"}, TRAIN, 3, HELD_OUT),
        ({"max_steps": 700}, 700 * 8 * WORKERS, 1, 0),
        ({"num_train_epochs": 2, "gradient_accumulation_steps": 7}, TRAIN, 2, 0),
    ],
    ids=["evaluation each epoch", "max_steps", "accumulation of more batches than twice those asked for"],
)
def test_the_whole_job_is_found(torchrun, tmp_path, settings, samples, epochs, evaluated):
    """Samples, epochs and evaluation, as its arguments state them, also of a job that fails after its last pass.

    And what nothing in the script or in Trainer makes equal: the first weights, drawn without a seed.
    """
    torchrun(
        "trainer.py",
        str(tmp_path / "out"),
        json.dumps(settings),
        WINDTUNNEL_COUNTERS_DIR=str(tmp_path),
        WINDTUNNEL_REHEARSE_STEPS=str(STEPS),
    )
    named = [part.name for part in fields(Loader)]
    *_, kept, seen = records(tmp_path, "loaders")
    assert (kept["ended_early"], seen["ended_early"]) == (True, False)
    for record in (kept, seen):
        loaders = tuple(Loader(**{name: loader[name] for name in named}) for loader in record["loaders"])
        shown = Input(rehearsed_steps=STEPS, ended_early=record["ended_early"], loaders=loaders)
        found = found_scale(shown, WORKERS)
        assert not isinstance(found, str), found
        assert (found.train_samples, found.epochs, found.evaluation_samples) == (samples, epochs, evaluated)
    findings = {record["finding"]: record["message"] for record in records(tmp_path, "finding")}
    assert "classifier.weight and 10 more" in findings["unequal_weights"], findings
    trained = [step for step in records(tmp_path, "step") if step["optimizer"]]
    assert {step["samples"] for step in trained} == {8 * settings.get("gradient_accumulation_steps", 1)}
    assert all(step["updated"] for step in trained)
    assert all(loader.taken <= 3 for loader in loaders if not loader.trains)
