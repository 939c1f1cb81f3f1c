"""Scripts in the shape of the public Trainium tutorials, as whole jobs: what runs here runs there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import windtunnel as sagemaker
from tests.docker.conftest import PATIENCE_S, QUICKLY_COMPILED, estimator
from windtunnel import LocalSession, PyTorch, TrainingJob

pytestmark = pytest.mark.docker

TUTORIALS = Path(__file__).parent / "tutorials"
TORCHRUN = {"torch_distributed": {"enabled": True}}
TWO_CORES = {"NEURONCORE_NUM_DEVICES": "2"}


def start(session: LocalSession, script: str, **arguments: Any) -> TrainingJob:
    """A job of one of the tutorials, started; with torchrun unless it brings its own start."""
    return estimator(session, script, source_dir=str(TUTORIALS), **arguments).fit(wait=False)


def finish(job: TrainingJob) -> list[str]:
    """Wait until the job has completed; its log. With the log in the message when it has not."""
    job.wait(logs=False, timeout=PATIENCE_S)
    lines = list(job.logs())
    assert job.status() == "Completed", "\n".join(lines[-50:])
    return lines


def numbers(name: str, lines: Sequence[str]) -> list[float]:
    """All values that the log has as ``name=value``, in order."""
    found = (re.search(rf"\b{name}=([-+.\deE]+)", line) for line in lines)
    return [float(match[1]) for match in found if match]


def ranks_are_equal(lines: Sequence[str]) -> bool:
    """Both ranks of the perceptron have said that their parameters differ by nothing."""
    said = [line for line in lines if "parameters differ by" in line]
    return len(said) == 2 and all(line.endswith("differ by 0.0") for line in said)


def test_a_perceptron_with_torchrun_and_with_processes_that_the_script_starts(
    session: LocalSession, tmp_path: Path
) -> None:
    """The same two cores, losses and parameters. Other ways to start processes: tests/container/test_libraries.py."""
    jobs = {
        "torchrun": start(session, "mlp_torchrun.py", distribution=TORCHRUN),
        "xmp.spawn": start(session, "mlp_xmp.py", environment=TWO_CORES),
    }
    losses, models = {}, {}
    for how, job in jobs.items():
        lines = finish(job)
        losses[how] = numbers("loss", lines)
        assert len(losses[how]) == 3 and losses[how][-1] < 0.5 * losses[how][0], losses[how]
        assert ranks_are_equal(lines), "\n".join(lines[-20:])
        models[how] = (job.download_model(tmp_path / how) / "checkpoint.pt").stat().st_size
        counters = job.counters()
        assert (counters["world_size"], counters["train"]["steps"]) == (2, 48)
    assert losses["torchrun"] == losses["xmp.spawn"]
    assert len(set(models.values())) == 1


def test_a_script_that_starts_torchrun_itself(session: LocalSession) -> None:
    """From a shell script with `neuron-ls`, and from Python: the hyperparameters arrive, both cores train."""
    jobs = [start(session, "start.sh"), start(session, "start_torchrun.py", hyperparameters={"epochs": 2})]
    for job in jobs:
        lines = finish(job)
        losses = numbers("loss", lines)
        assert len(losses) == 2 and losses[1] < losses[0]
        assert ranks_are_equal(lines)
        assert job.counters()["world_size"] == 2


def test_a_notebook_for_an_older_framework_of_which_only_the_imports_changed(
    session: LocalSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SDK v2's session, 1.11's names, and a pin that cannot be had: the image's version stands in."""
    monkeypatch.setenv("WINDTUNNEL_HOME", str(session.home))
    sess = sagemaker.Session(default_bucket=sagemaker.Session().default_bucket())
    inputs = {}
    for channel, name in (("train", "train.csv"), ("val", "test.csv")):
        rows = "".join(f"{n % 2},a {('bad', 'good')[n % 2]} book\n" for n in range(64))
        (tmp_path / name).write_text(f"label,content\n{rows}")
        inputs[channel] = sess.upload_data(path=str(tmp_path / name), key_prefix="reviews")
    pt_estimator = PyTorch(
        entry_point="train.py",
        source_dir=str(TUTORIALS / "older"),
        role=sagemaker.get_execution_role(),
        instance_count=1,
        instance_type="ml.trn1.32xlarge",
        framework_version="1.11.0",
        py_version="py38",
        disable_profiler=True,
        base_job_name="reviews",
        hyperparameters={"learning_rate": 1.0},
        volume_size=512,
        distribution=TORCHRUN,
        environment=QUICKLY_COMPILED,
        local_cores=2,
    )
    lines = finish(pt_estimator.fit(inputs, wait=False))
    assert numbers("accuracy", lines) == [1.0]
    assert any("transformers==4.21.0 is left out; transformers 4.48" in line for line in lines)
    assert pt_estimator.model_data.startswith(f"s3://{sess.default_bucket()}/reviews-")


def test_bert_pre_training_that_is_resumed(session: LocalSession) -> None:
    """From a checkpoint at half of the steps a second job says the rest of what the first one said."""
    places = [f"s3://{session.default_bucket()}/bert-pretraining-{run}" for run in (1, 2)]

    def pre_train(checkpoints: str) -> TrainingJob:
        return start(
            session,
            "bert_pretraining.py",
            distribution=TORCHRUN,
            hyperparameters={"steps_per_checkpoint": 12},
            checkpoint_s3_uri=checkpoints,
        )

    whole = pre_train(places[0])
    uninterrupted = finish(whole)
    losses = numbers("step_loss", uninterrupted)
    assert len(losses) == 24 and losses[-1] < losses[0] - 0.5
    # Two batches each; the optimizer, behind the script's own synchronisation, belongs to the second of them.
    train = whole.counters()["train"]
    assert (train["steps"], train["updates"]["steps"]) == (48, 24)

    copy(session, "bert-pretraining-1/ckpt_00012.pt", "bert-pretraining-2/ckpt_00012.pt")
    resumed = finish(pre_train(places[1]))
    assert "resumed at step 12" in resumed
    assert numbers("step_loss", resumed) == pytest.approx(losses[12:], abs=2e-4)
    assert numbers("learning_rate", resumed) == numbers("learning_rate", uninterrupted)[12:]


def copy(session: LocalSession, key: str, to: str) -> None:
    """An object of the session's bucket under another key."""
    bucket = session.default_bucket()
    session.service.client("s3").copy_object(  # type: ignore[attr-defined]
        Bucket=bucket, Key=to, CopySource={"Bucket": bucket, "Key": key}
    )
