"""BERT on 2 simulated cores against plain PyTorch DDP over gloo on the same processors.

    python tests/benchmarks/training.py [--rounds 2] [--steps 24] [--image NAME]

BERT-Mini's shape (4 layers, hidden 256, 4 heads, vocabulary 30522; random weights), 8 x 128
tokens a core, AdamW, 2 processes. Both run in the training image in turn (ours, eager, ours,
eager, ...), from the same weights and data, and must show the same losses. Prints one JSON object:

    throughput_ratio           samples/s, ours over eager: from the median step of all rounds
    samples_per_second         of both, steady state (both cores together)
    seconds_to_second_step     of both, from launch, compilation included (median of the rounds)
    processor_seconds_per_step of both: processor time of one process, which other load changes less
    rounds                     each launch's median step in seconds
    losses                     the largest relative difference of any step's loss of any rank
    dropout_0.1                the same with BERT's default dropout (other random numbers: the losses
                               of the two differ, only their means are reported)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSIDE = "/benchmarks"
WORKERS, BATCH = 2, 8
WARM_STEPS = 4
"""Steps left out: two with compilations, and two in which caches and the memory's pages warm up."""
LOSS_TOLERANCE = 1e-3


def main() -> None:
    """Start the container; or, inside it, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--image", default=os.environ.get("WINDTUNNEL_IMAGE", "windtunnel-training:0.1.0"))
    parser.add_argument("--no-dropout-run", action="store_true", help="leave the run with dropout 0.1 out")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        result = measure(arguments.rounds, arguments.steps, 0.0)
        if not arguments.no_dropout_run:
            result["dropout_0.1"] = measure(arguments.rounds, arguments.steps, 0.1)
        print(json.dumps(result, indent=2))
        return
    command = [
        "docker", "run", "--rm", "--network", "none", "--shm-size", "512m", "--entrypoint", "python",
        "--env", "WINDTUNNEL_INSTANCE_TYPE=ml.trn1.2xlarge",
        "--volume", f"{HERE}:{INSIDE}:ro",
        arguments.image, f"{INSIDE}/training.py", "--inside", *sys.argv[1:],
    ]  # fmt: skip
    sys.exit(subprocess.run(command, check=False).returncode)


def measure(rounds: int, steps: int, dropout: float) -> dict[str, object]:
    """Ours and eager in turn, so that neither gets the quieter machine."""
    launches: dict[str, list[dict[str, list[float]]]] = {"xla": [], "gloo": []}
    for _ in range(rounds):
        for kind, done in launches.items():
            done.append(launch(kind, steps, dropout))
    step = {
        kind: statistics.median(seconds for one in done for seconds in one["steps"])
        for kind, done in launches.items()
    }
    result: dict[str, object] = {
        "workers": WORKERS,
        "processors": len(os.sched_getaffinity(0)),
        "throughput_ratio": round(step["gloo"] / step["xla"], 3),
        "samples_per_second": both({kind: WORKERS * BATCH / step[kind] for kind in step}, 2),
        "seconds_to_second_step": both(
            {kind: statistics.median(one["second"][0] for one in done) for kind, done in launches.items()}, 1
        ),
        "processor_seconds_per_step": both(
            {kind: statistics.median(one["processor"][0] for one in done) for kind, done in launches.items()},
            4,
        ),
        "rounds": {
            name: [round(statistics.median(one["steps"]), 4) for one in launches[kind]]
            for name, kind in (("ours", "xla"), ("eager", "gloo"))
        },
    }
    losses = {kind: done[0]["losses"] for kind, done in launches.items()}
    if dropout:
        result["mean_loss"] = both({kind: statistics.mean(losses[kind]) for kind in losses}, 4)
    else:
        result["losses"] = {"largest_relative_difference": agreed(losses["xla"], losses["gloo"])}
    return result


def both(values: dict[str, float], digits: int) -> dict[str, float]:
    """The two kinds under the names a reader knows."""
    return {"ours": round(values["xla"], digits), "eager": round(values["gloo"], digits)}


def agreed(ours: list[float], eager: list[float]) -> float:
    """The largest relative difference; leaves with a message when the two did not train the same."""
    difference = max(abs(left - right) / abs(right) for left, right in zip(ours, eager, strict=True))
    if not difference < LOSS_TOLERANCE:
        raise SystemExit(f"the two runs trained different models (losses ours, eager): {ours}, {eager}")
    return float(f"{difference:.2e}")


def launch(kind: str, steps: int, dropout: float) -> dict[str, list[float]]:
    """One launch: seconds to the second step, of each steady step (the slower rank's), losses of all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        # Counters as in a job: they are part of what ours costs.
        environment = {**os.environ, "WINDTUNNEL_COUNTERS_DIR": f"{folder}/counters"}
        if kind == "gloo":
            environment["NEURON_SIM_PLAIN_TORCHRUN"] = "1"
        command = [
            "torchrun", "--nnodes", "1", "--nproc_per_node", str(WORKERS), f"{INSIDE}/scripts/bert.py", kind,
            "--output", folder, "--steps", str(steps), "--dropout", str(dropout),
        ]  # fmt: skip
        started = time.time()
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"torchrun failed with {done.returncode}:\n{done.stdout[-4000:]}")
        ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank-*.json"))]
    if len(ranks) != WORKERS or len({json.dumps(rank["parameters"]) for rank in ranks}) != 1:
        raise SystemExit("the workers did not all end with the same parameters")
    ends = [max(both_ends) for both_ends in zip(*(rank["ends"] for rank in ranks), strict=True)]
    return {
        "second": [ends[1] - started],
        "steps": [
            after - before for before, after in zip(ends[WARM_STEPS:], ends[WARM_STEPS + 1 :], strict=False)
        ],
        "processor": [
            statistics.mean(
                rank["processor_seconds"][-1] - rank["processor_seconds"][WARM_STEPS] for rank in ranks
            )
            / (steps - 1 - WARM_STEPS)
        ],
        "losses": [loss for rank in ranks for loss in rank["losses"]],
    }


if __name__ == "__main__":
    main()
