"""Rehearses the training job for a Trainium instance on this machine, and prints its bill.

    python run.py              generated reviews, a small BERT: minutes on two CPU cores
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

HERE = Path(__file__).resolve().parent
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


def make_estimator(
    hyperparameters: dict[str, Any], session: Any = None, instance_type: str = "ml.trn1.2xlarge"
) -> PyTorch:
    """The job, as one would send it to AWS: with session=AwsSession(...), it goes there."""
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
    """Load the job's model.tar.gz in plain PyTorch and let it judge the held-out reviews again.

    Runs here if torch is installed, else in the training image. Prints what it finds; returns whether the
    model loads and is right in `at_least` of the cases.

    Raises:
        RuntimeError: neither torch nor Docker is here.
    """
    with tempfile.TemporaryDirectory() as folder:
        job.download_model(folder)
        command = ["verify_model.py", folder, str(val), "--at-least", str(at_least)]
        return (
            subprocess.run([*_python_with_torch(folder, val), *command], cwd=HERE, check=False).returncode
            == 0
        )


def _python_with_torch(model: str, val: Path) -> list[str]:
    """A command line that starts a Python with torch and transformers in this folder."""
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
    # The margin: a review that stands on the edge may fall to the other side when sums round differently.
    loads = verify(job, data.val, at_least=accuracy - 0.003)
    print()
    print(
        job.report(
            full_scale=FullScale(
                train_samples=AMAZON_POLARITY_REVIEWS,
                epochs=1,
                evaluation_samples=AMAZON_POLARITY_HELD_OUT,
                sequence_length=hyperparameters["max_length"],
            )
        )
    )
    if not loads:
        sys.exit("the model is not the same in plain PyTorch: see above")
    if accuracy < given.at_least:
        sys.exit(f"validation accuracy {accuracy:.3f} is below {given.at_least}")


if __name__ == "__main__":
    main()
