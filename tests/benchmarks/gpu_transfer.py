"""What a rehearsal says of a GPU, held against plain scripts that the project measured on an H100.

    python tests/benchmarks/gpu_transfer.py [--models "BERT-Base" ...]

Each model of `gpu_training` that fits this machine trains for a few steps on one simulated core, from what those count
a step on one GPU of p5 is modelled, and set beside each measured run of that model. What launching takes for each
second of tracing was measured with four of them (`priceperf.model.plain_script`); the other four are new to it. Prints
one JSON object:

    rows      for each run: ``modelled_ms``, ``measured_ms``, ``error`` of the throughput, ``inside`` the 80 % interval
    models    for each model: the mean error, and seconds of tracing a step (of the reference host)
    mean_error, inside   of the models, each weighing the same
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

from own_home import leave

from windtunnel import LocalSession, PyTorch
from windtunnel.priceperf import CountedWorkload, FullScale, Run, instance_type
from windtunnel.priceperf.calibration.published_rows import measured
from windtunnel.priceperf.model.precision import GPU_PRECISIONS
from windtunnel.priceperf.workload.cluster import Cluster

HERE = Path(__file__).resolve().parent
BATCHES = {
    "BERT-Base": 8, "BERT-Base classifier": 8, "GPT-2": 1, "ViT-Base": 8,
    "DistilBERT": 4, "RoBERTa-Base": 4, "OPT-125M": 1, "ViT-Small": 16,
}  # fmt: skip
P5 = instance_type("ml.p5.48xlarge")
SIZE = FullScale(train_samples=1_000_000)


def rehearsed(model: str, batch: int, session: LocalSession) -> CountedWorkload:
    """The counts of a few steps."""
    estimator = PyTorch(
        "plain_model.py",
        source_dir=str(HERE / "scripts"),
        dependencies=[str(HERE / "gpu_training.py")],
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        hyperparameters={"model": model, "batch": batch},
        distribution={"torch_distributed": {"enabled": True}},
        environment={"NEURON_RT_NUM_CORES": "1"},
        session=session,
    )
    return CountedWorkload.from_counters(estimator.fit(logs=False).counters())


def held_against(model: str, job: CountedWorkload) -> list[dict[str, Any]]:
    """Each measured run of the model that has the attention of the rehearsed script: scaled dot product attention."""
    found = []
    for row in measured():
        if f", {model} s" not in row.config or row.training.attention != "flash":
            continue
        for precision in GPU_PRECISIONS:
            if precision.ran_as("fp32") != row.training.matmul_dtype:
                continue
            run = Run(Cluster(P5, 1), P5.core_count * row.training.microbatch, precision)
            item = job.modelled(run, SIZE)
            modelled_s, check = item.step.total_s, item.range_check
            apart = math.log(row.step_s / modelled_s)
            found.append(
                {
                    "run": row.config,
                    "modelled_ms": round(1e3 * modelled_s, 1),
                    "measured_ms": round(1e3 * row.step_s, 1),
                    "error": round(math.expm1(apart), 3),
                    "inside": -check.log_fast <= apart <= check.log_slow,
                }
            )
    return found


def main() -> None:
    """Rehearse and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=list(BATCHES), choices=list(BATCHES))
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    models: dict[str, dict[str, Any]] = {}
    inside: defaultdict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as home:
        session = LocalSession(home=Path(home))
        for model in arguments.models:
            job = rehearsed(model, BATCHES[model], session)
            of_model = held_against(model, job)
            print(model, of_model, file=sys.stderr, flush=True)
            rows += of_model
            models[model] = {
                "mean_error": round(mean(abs(each["error"]) for each in of_model), 3),
                "trace_s": job.step.host and round(job.step.host.trace_s, 4),
            }
            inside[model] = [each["inside"] for each in of_model]
        leave(session)
    figures = {
        "rows": rows,
        "models": models,
        "mean_error": round(mean(each["mean_error"] for each in models.values()), 3),
        "inside": round(mean(map(mean, inside.values())), 3),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
