"""Managed spot training with real containers: what an interruption costs, and what it does not change."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.docker.conftest import PATIENCE_S, estimator
from windtunnel import LocalSession, TrainingJob

pytestmark = pytest.mark.docker

INTERRUPTIONS = 3
SEED = 553
MEAN_S = 1.5
ATTEMPT = ["Starting", "Downloading", "Training"]


def train(session: LocalSession, interruptions: int) -> TrainingJob:
    """A spot job of 10 s with 40 checkpoints, each attempt interrupted 1.5 s after its first."""
    asked = {
        "WINDTUNNEL_SPOT_INTERRUPTIONS": interruptions,
        "WINDTUNNEL_SPOT_SEED": SEED,
        "WINDTUNNEL_SPOT_MEAN_SECONDS": MEAN_S,
        "WINDTUNNEL_SPOT_AFTER": "checkpoint",  # however slow this machine starts a container
    }
    return estimator(
        session,
        "checkpointing.py",
        hyperparameters={"attempts": interruptions + 1},
        use_spot_instances=True,
        max_wait=600,
        checkpoint_s3_uri=f"s3://{session.default_bucket()}/spot/{interruptions}",
        environment={name: str(value) for name, value in asked.items()},
    ).fit(wait=False)


def parameters(job: TrainingJob, folder: Path) -> bytes:
    """What was saved, as it lies in the model's archive."""
    return (job.download_model(folder / job.name) / "model.json").read_bytes()


def starts(job: TrainingJob) -> list[int]:
    """The epochs that the attempts went on from."""
    found = (re.search(r"goes on from epoch (\d+)", line) for line in job.logs())
    return [int(match[1]) for match in found if match]


def test_three_interruptions_change_nothing_but_the_bill(session: LocalSession, tmp_path: Path) -> None:
    """The same parameters to the last bit, three Interrupted transitions, and less billed than trained."""
    interrupted, straight = (train(session, n) for n in (INTERRUPTIONS, 0))
    out = io.StringIO()
    straight.wait(logs=False, timeout=PATIENCE_S)
    interrupted.wait(timeout=PATIENCE_S, out=out)

    statuses = [t["Status"] for t in interrupted.describe()["SecondaryStatusTransitions"]]
    begun = [status for status in statuses if status != "Pending"]
    assert begun == [*[*ATTEMPT, "Interrupted"] * INTERRUPTIONS, *ATTEMPT, "Uploading", "Completed"]
    assert parameters(interrupted, tmp_path) == parameters(straight, tmp_path)
    assert starts(straight) == [0]
    went_on = starts(interrupted)
    assert len(went_on) == INTERRUPTIONS + 1
    assert went_on == sorted(set(went_on)), "every attempt gets further"

    said = out.getvalue().partition("Training seconds: ")[2]
    print(f"\nwithout interruptions: {straight.describe()['TrainingTimeInSeconds']} s trained")
    print(f"with {INTERRUPTIONS}: attempts went on from epochs {went_on}\nTraining seconds: {said}")
    described = interrupted.describe()
    billable, trained = described["BillableTimeInSeconds"], described["TrainingTimeInSeconds"]
    assert billable == pytest.approx(0.3 * trained, abs=1), "70 % less, in whole seconds"
    assert f"Managed Spot Training savings: {100 * (1 - billable / trained):.1f}%" in said
    assert interrupted.counters()["spot"]["interruptions_simulated"] == INTERRUPTIONS
