"""32 simulated cores training an MLP against plain torchrun: torch_xla on the CPU and gloo.

    python tests/benchmarks/cores.py [--workers 32] [--image NAME]

Runs both in the training image, one after the other, and prints one JSON object:
`time_ratio` (ours over plain, from launch to end), seconds of both, and private
memory a worker at the end of training (Private_Clean + Private_Dirty, MiB, mean).
Plain: torch's own launcher, each worker a new process with torch_xla's CPU device,
gradients averaged by one gloo all_reduce a step. Both train the same parameters.
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

_TOLERANCE = 1e-4
"""Between the sums of 105,214 trained parameters of both runs: fp32 rounding, and far less than a step changes."""


def main() -> None:
    """Start the container; or, inside it, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=32)
    parser.add_argument("--image", default=os.environ.get("WINDTUNNEL_IMAGE", "windtunnel-training:0.1.0"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(measure(arguments.workers), indent=2))
        return
    command = [
        "docker", "run", "--rm", "--network", "none", "--shm-size", "512m", "--entrypoint", "python",
        "--env", "WINDTUNNEL_INSTANCE_TYPE=ml.trn1.32xlarge",
        "--volume", f"{HERE}:{INSIDE}:ro",
        arguments.image, f"{INSIDE}/cores.py", "--inside", "--workers", str(arguments.workers),
    ]  # fmt: skip
    sys.exit(subprocess.run(command, check=False).returncode)


def measure(workers: int) -> dict[str, object]:
    """Both launches, ours first."""
    ours = launch(workers, plain=False)
    plain = launch(workers, plain=True)
    # The two are compiled with different flags: sums may be rounded in another order.
    if abs(ours["parameters"] - plain["parameters"]) > _TOLERANCE:
        raise SystemExit(
            f"the two runs trained different parameters: {ours['parameters']}, {plain['parameters']}"
        )
    return {
        "workers": workers,
        "processors": len(os.sched_getaffinity(0)),
        "time_ratio": round(ours["seconds"] / plain["seconds"], 3),
        "seconds": ours["seconds"],
        "plain_seconds": plain["seconds"],
        "private_mib_per_worker": ours["private_mib"],
        "plain_private_mib_per_worker": plain["private_mib"],
    }


def launch(workers: int, *, plain: bool) -> dict[str, float]:
    """One launch: seconds, mean private MiB, and the sum of the trained parameters."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "BENCHMARK_OUTPUT": folder}
        if plain:
            environment |= {"NEURON_SIM_PLAIN_TORCHRUN": "1", "PJRT_DEVICE": "CPU"}
        command = ["torchrun", "--nnodes", "1", "--nproc_per_node", str(workers), f"{INSIDE}/scripts/mlp.py"]
        started = time.perf_counter()
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"torchrun failed with {done.returncode}:\n{done.stdout[-4000:]}")
        workers_said = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank-*.json"))]
    if len(workers_said) != workers or len({said["parameters"] for said in workers_said}) != 1:
        raise SystemExit(f"the workers did not all end with the same parameters: {workers_said}")
    return {
        "seconds": round(seconds, 2),
        "private_mib": round(statistics.mean(said["private_mib"] for said in workers_said), 1),
        "parameters": workers_said[0]["parameters"],
    }


if __name__ == "__main__":
    main()
