"""What a rehearsal says of plain scripts, held against those measured on an H100, or published elsewhere.

    python tests/benchmarks/gpu_transfer.py [--models "BERT-Base" ...] [--write]

Each model of `gpu_training` that fits this machine trains for a few steps on one simulated core, from what those count
a step on one GPU or NeuronCore is modelled, and set beside each run of that model. With ``--write`` what was counted
goes into the price model's `rehearsed.json`; then run scripts/fit_calibrations.py. Prints one JSON object:

    rows      for each run: ``modelled_ms``, ``measured_ms``, ``error`` of the throughput, ``inside`` the 80 % interval
    models    for each model: the mean error, and seconds of tracing a step (of the reference host)
    mean_error, inside   of the models, each weighing the same; the interval is that of a rehearsed job, which most of
                         these models took part in (`windtunnel.priceperf.workload.rehearsed_scripts` judges without)
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import windtunnel
from windtunnel import LocalSession, PyTorch
from windtunnel.priceperf import CountedWorkload, FullScale
from windtunnel.priceperf.workload.rehearsed_scripts import published, runs

HERE = Path(__file__).resolve().parent
FILE = Path(windtunnel.__file__).parent / "priceperf/calibration/rehearsed.json"
BATCHES = {
    "BERT-Base": 8, "BERT-Base classifier": 8, "GPT-2": 1, "ViT-Base": 8,
    "DistilBERT": 4, "RoBERTa-Base": 4, "OPT-125M": 1, "ViT-Small": 16,
    "ResNet-50": 8, "EfficientNet-B0": 8, "ConvNeXt-Tiny": 8, "Swin-T": 8, "U-Net": 1, "wav2vec2-Base": 1,
    "Whisper-Base": 1, "T5-Base": 1, "CLIP-B32": 8, "DeBERTa-v3-Base": 2, "LSTM": 20, "Recommender": 2048,
    "Perceptron": 512, "DenseNet-121": 8, "RegNetY-3.2GF": 8, "MobileNetV3-Large": 16, "R3D-18": 1,
    "SegFormer-B0": 1, "BART-Base": 1, "GRU": 1, "ResNeXt-101": 4, "MNIST MLP": 128, "MNIST CNN": 128,
    "MNIST ViT": 128, "CIFAR-10 MLP": 128, "CIFAR-10 CNN": 128, "CIFAR-10 ViT": 128,
    "Residual CNN": 64, "ViT of 64 pixels": 64,
}  # fmt: skip
"""What a rehearsal takes of each model."""
SIZE = FullScale(train_samples=1_000_000)
_COUNTED = ("steps", "samples", "samples_per_step_per_core", "flops", "bytes_accessed", "collectives", "work",
            "least_trace_seconds", "reference_seconds", "launches", "steps_with_host_reads")  # fmt: skip
_WORK = ("products", "convolutions", "elementwise", "gather_bytes", "scatter_bytes", "sdpa")


def rehearsed(model: str, session: LocalSession) -> dict[str, Any]:
    """The counts of a few steps."""
    estimator = PyTorch(
        "plain_model.py",
        source_dir=str(HERE / "scripts"),
        dependencies=[
            str(HERE / name) for name in ("gpu_training.py", "other_models.py", "published_models.py")
        ],
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        hyperparameters={"model": model, "batch": BATCHES[model]},
        distribution={"torch_distributed": {"enabled": True}},
        local_cores=1,
        session=session,
    )
    return estimator.fit(logs=False).counters()


def told(counters: dict[str, Any]) -> dict[str, Any]:
    """What a prediction for a GPU takes of counters."""
    parts = (
        "schema",
        "instance_type",
        "instance_count",
        "cores_used",
        "world_size",
        "host_cpu",
        "parameters",
    )
    found = {name: counters[name] for name in parts}
    found["parameters"] = {
        name: value for name, value in counters["parameters"].items() if not isinstance(value, dict)
    }
    train = {name: counters["train"].get(name) for name in _COUNTED}
    train["work"] = {name: train["work"][name] for name in _WORK if name in train["work"]}
    activations = train["work"]["elementwise"]["activations"]["fused_bytes"]
    train["work"]["elementwise"] = {"activations": {"fused_bytes": activations}}
    graphs = {"count": counters["graphs"]["count"], "ledger": []}
    return {**found, "train": train, "other": None, "graphs": graphs}


def written(found: dict[str, Any]) -> str:
    """As the file has it: a line for each model."""
    lines = (f"{json.dumps(model)}: {json.dumps(found[model], separators=(',', ':'))}" for model in found)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def held_against(model: str, job: CountedWorkload) -> list[dict[str, Any]]:
    """Each run of the model that has the attention of the rehearsed script: scaled dot product attention."""
    found = []
    for each in (*runs(model), *published(model)):
        item = each.of(job).modelled(each.run, SIZE)
        modelled_s, check = item.step.total_s, item.range_check
        apart = math.log(each.step_s / modelled_s)
        found.append(
            {
                "run": each.name,
                "modelled_ms": round(1e3 * modelled_s, 1),
                "measured_ms": round(1e3 * each.step_s, 1),
                "error": round(math.expm1(apart), 3),
                "inside": -check.log_fast <= apart <= check.log_slow,
            }
        )
    return found


def main() -> None:
    """Rehearse and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(BATCHES), choices=list(BATCHES))
    parser.add_argument("--write", action="store_true", help="also into the price model's file")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    models: dict[str, dict[str, Any]] = {}
    inside: defaultdict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as home:
        session = LocalSession(home=Path(home))
        for model in arguments.models:
            counters = told(rehearsed(model, session))
            if arguments.write:
                FILE.write_text(written({**json.loads(FILE.read_text()), model: counters}))
            job = CountedWorkload.from_counters(counters)
            of_model = held_against(model, job)
            print(model, of_model, file=sys.stderr, flush=True)
            rows += of_model
            models[model] = {
                "mean_error": round(mean(abs(each["error"]) for each in of_model), 3),
                "trace_s": job.step.host and round(job.step.host.trace_s, 4),
            }
            inside[model] = [each["inside"] for each in of_model]
        session.backend.stop()
    figures = {
        "rows": rows,
        "models": models,
        "mean_error": round(mean(each["mean_error"] for each in models.values()), 3),
        "inside": round(mean(map(mean, inside.values())), 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
