"""Trains a BERT on two simulated NeuronCores, then says what BERT base would take and cost on Trainium.

    python run.py              generated reviews, a small BERT, then BERT base in short: minutes on two CPU cores
    python run.py --real       Amazon Polarity, bert-base-uncased: needs the hub, and an hour

Everything below is what one writes for SageMaker; only the import says windtunnel.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import prepare_data

from windtunnel import FullScale, PyTorch, TrainingJob, __version__
from windtunnel.priceperf.published.bert_jobs_predicted import predictions

HERE = Path(__file__).resolve().parent
REPORT = HERE / "report.html"
AMAZON_POLARITY_REVIEWS = 3_600_000
AMAZON_POLARITY_HELD_OUT = 400_000

SMALL: dict[str, Any] = {
    "model_name": "small",
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 2e-3,
    "max_length": 40,
    "log_every": 50,
}
REAL: dict[str, Any] = {
    "model_name": "bert-base-uncased",
    "epochs": 1,
    "batch_size": 8,
    "learning_rate": 5e-5,
    "max_length": 128,
    "log_every": 10,
}


BASE: dict[str, Any] = {
    **REAL,
    "model_name": "small",  # built from its dimensions, because time and cost do not depend on the weights
    "vocab_size": 30_522,
    "embedding_rows": 30_522,
    "num_layers": 12,
    "hidden_size": 768,
    "num_heads": 12,
    "dropout": 0.1,
}
"""BERT base with the batch size and sequence length of AWS's published job."""


def make_estimator(
    hyperparameters: dict[str, Any], session: Any = None, instance_type: str = "ml.trn1.2xlarge"
) -> PyTorch:
    """The estimator of the job. It is written as for AWS, where session=AwsSession(...) would run it."""
    return PyTorch(
        "train.py",
        source_dir=str(HERE / "scripts"),
        framework_version="2.9",
        instance_type=instance_type,
        instance_count=1,
        distribution={"torch_distributed": {"enabled": True}},
        hyperparameters=hyperparameters,
        metric_definitions=[
            {"Name": "train:loss", "Regex": r"train_loss=([0-9.]+)"},
            {"Name": "validation:accuracy", "Regex": r"val_accuracy=([0-9.]+)"},
            {"Name": "validation:loss", "Regex": r"val_loss=([0-9.]+)"},
        ],
        max_run=3 * 3600,
        base_job_name="bert-amazon-polarity",
        session=session,
    )


def verify(job: TrainingJob, val: Path, at_least: float) -> bool:
    """Load the job's model.tar.gz in plain PyTorch and classify the held-out reviews again.

    Runs on this machine if torch is installed, else in the training image. Prints the result; returns whether the
    model loads and its accuracy is at least `at_least`.

    Raises:
        RuntimeError: this machine has neither torch nor Docker.
    """
    with tempfile.TemporaryDirectory() as folder:
        job.download_model(folder)
        command = ["verify_model.py", folder, str(val), "--at-least", str(at_least)]
        return (
            subprocess.run([*_python_with_torch(folder, val), *command], cwd=HERE, check=False).returncode
            == 0
        )


def _python_with_torch(model: str, val: Path) -> list[str]:
    """The start of a command line: a Python that has torch and transformers, run in this folder."""
    if all(importlib.util.find_spec(name) for name in ("torch", "transformers")):
        return [sys.executable]
    if os.environ.get("WINDTUNNEL_RUNNER") == "process":
        return [os.environ.get("WINDTUNNEL_SIM_PYTHON", sys.executable)]
    if shutil.which("docker") is None:
        raise RuntimeError(
            "torch is not installed here, and the docker command that would start it in the training image is not "
            "on the PATH. Install one of them, or run verify_model.py where torch is."
        )
    image = os.environ.get("WINDTUNNEL_IMAGE", f"windtunnel-training:{__version__}")
    folders = [flag for path in (HERE, Path(model), val) for flag in ("--volume", f"{path}:{path}:ro")]
    return [
        "docker", "run", "--rm", "--network", "none", "--user", f"{os.getuid()}:{os.getgid()}",
        "--env", "HOME=/tmp", *folders, "--workdir", str(HERE), "--entrypoint", "python", image,
    ]  # fmt: skip


def rehearse_base(data: prepare_data.Prepared) -> None:
    """Run a few steps of BERT base, and print the answer for AWS's published job beside AWS's own figures."""
    print("\nBERT base as in AWS's published job, rehearsed in short (some three minutes)", flush=True)
    estimator = make_estimator(BASE, instance_type="ml.trn1.32xlarge")
    job = estimator.fit({"train": str(data.train), "val": str(data.val)}, rehearse=True)
    whole = FullScale(
        train_samples=AMAZON_POLARITY_REVIEWS,
        evaluation_samples=AMAZON_POLARITY_HELD_OUT,
        tokenised_samples=AMAZON_POLARITY_REVIEWS + AMAZON_POLARITY_HELD_OUT,
        sequence_length=BASE["max_length"],
    )
    report = job.report(full_scale=whole)
    print(report)
    report.to_html(REPORT)
    print(f"With charts: {REPORT}")
    found = predictions(job.counters())
    print(
        "\nAWS published for this job, at the prices of 2022 and with fp32 on p4d (the answer above has TF32 and the "
        "price to which p4d fell):"
    )
    for item in (found.trn1, found.p4d):
        name, (low, high) = item.job.instance_type.removeprefix("ml."), item.iterations_interval
        print(
            f"  {name:14} {item.job.iterations_per_second} iterations/s, ${item.job.cost_usd:.2f}; "
            f"this rehearsal: {item.iterations_per_second:.2f} ({low:.2f} to {high:.2f}), ${item.cost_usd:.2f}"
        )
    low, high = found.saving_interval
    print(
        f"  trn1 costs {1 - found.published_cost_ratio:.0%} less; this rehearsal: {1 - found.cost_ratio:.0%} less "
        f"({low:.0%} to {high:.0%})"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", action="store_true", help="Amazon Polarity and bert-base-uncased")
    parser.add_argument(
        "--instance-type", default="ml.trn1.2xlarge", help="WINDTUNNEL_LOCAL_CORES=2 for one with many cores"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--train", type=int, help="training reviews")
    parser.add_argument(
        "--at-least", type=float, default=0.9, help="validation accuracy below which this fails"
    )
    given = parser.parse_args()

    data = prepare_data.prepare(
        given.data.resolve(),
        train=given.train or (2_000 if given.real else 24_000),
        held_out=500 if given.real else 1_000,
        source="hub" if given.real else "generated",
    )
    hyperparameters = REAL if given.real else SMALL
    estimator = make_estimator(hyperparameters, instance_type=given.instance_type)
    job = estimator.fit({"train": str(data.train), "val": str(data.val)})

    accuracy = job.metrics()["validation:accuracy"]
    print(f"\nvalidation accuracy {accuracy:.3f}; model in {job.model_data}", flush=True)
    # A margin, because sums round differently there, which may change the label of a borderline review.
    loads = verify(job, data.val, at_least=accuracy - 0.003)
    if given.real:
        print(
            job.report(
                full_scale=FullScale(AMAZON_POLARITY_REVIEWS, evaluation_samples=AMAZON_POLARITY_HELD_OUT)
            )
        )
    else:
        rehearse_base(data)
    if not loads:
        sys.exit("the model is not the same in plain PyTorch: see above")
    if accuracy < given.at_least:
        sys.exit(f"validation accuracy {accuracy:.3f} is below {given.at_least}")


if __name__ == "__main__":
    main()
