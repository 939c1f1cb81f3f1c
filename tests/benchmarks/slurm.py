"""From `fit()` to the script's first line on a Slurm cluster, over a bare `srun` of the same command.

    python tests/benchmarks/slurm.py [--pairs 5]

The cluster is one of this machine's own (tests/slurm/cluster.py): needs root and Debian's Slurm. `srun`, `sbatch`
and `fit()` take turns; the backend runs already. slurmctld schedules batch jobs every 3 s at most (its
`batch_sched_delay`), so each begins when it has had nothing to do for longer, but for `fit()` right behind
another job. Prints one JSON object; `added_s` is the median over the pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "sdk"), str(ROOT / "local_backend")]

from fit_overhead import added, first_line  # noqa: E402 - where it is was said just now
from tests.slurm.cluster import Cluster  # noqa: E402
from tests.slurm.jobs import IMAGE, make_interpreter  # noqa: E402

from windtunnel import Estimator, LocalSession  # noqa: E402

_SCHEDULER_S = 4.0
SCRIPT = ROOT / "tests" / "benchmarks" / "scripts" / "first_line.py"


def main() -> None:
    """Measure on a cluster and in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cluster").mkdir()
        (Path(folder) / "python").mkdir()
        cluster = Cluster(Path(folder) / "cluster")
        python = make_interpreter(Path(folder) / "python")
        variables = {"WINDTUNNEL_RUNNER": "slurm", "WINDTUNNEL_SIM_PYTHON": str(python)}
        os.environ.update(variables, SLURM_CONF=str(cluster.configuration))
        session = LocalSession(home=Path(folder) / "home")
        try:
            cluster.start()
            print(json.dumps(measure(session, python, Path(folder), arguments.pairs), indent=2))
        finally:
            session.backend.stop()
            cluster.stop()


def measure(session: LocalSession, python: Path, folder: Path, pairs: int) -> dict[str, Any]:
    """The pairs in turn, after one of each that does not count."""
    command = [str(python), str(SCRIPT)]
    srun, sbatch, fits, behind = [], [], [], []
    for number in range(pairs + 1):
        time.sleep(_SCHEDULER_S)
        srun_s = run_bare(command)
        time.sleep(_SCHEDULER_S)
        sbatch_s = submit_bare(command, folder / f"sbatch-{number}")
        time.sleep(_SCHEDULER_S)
        fit_s, behind_s = fit_once(session, command), fit_once(session, command)
        if number:
            srun.append(srun_s)
            sbatch.append(sbatch_s)
            fits.append(fit_s)
            behind.append(behind_s)
    return {
        "added_s": added(fits, srun),
        "added_s_over_sbatch": added(fits, sbatch),
        "added_s_right_behind_another_job": added(behind, srun),
        "srun_s": round(statistics.median(srun), 3),
        "sbatch_s": round(statistics.median(sbatch), 3),
        "fit_s": round(statistics.median(fits), 3),
        "added_s_of_each_pair": [round(fit - bare, 3) for fit, bare in zip(fits, srun, strict=True)],
        "pairs": pairs,
    }


def run_bare(command: list[str]) -> float:
    """Seconds from the start of `srun` to the script's first line."""
    started = time.time()
    done = subprocess.run(["srun", "--mpi=none", *command], capture_output=True, text=True, check=True)
    return first_line(done.stdout.splitlines()) - started


def submit_bare(command: list[str], output: Path) -> float:
    """Seconds from the start of `sbatch` to the script's first line."""
    started = time.time()
    wrapped = f"--wrap={shlex.join(command)}"
    subprocess.run(["sbatch", "--wait", f"--output={output}", wrapped], capture_output=True, check=True)
    return first_line(output.read_text().splitlines()) - started


def fit_once(session: LocalSession, command: list[str]) -> float:
    """Seconds from the call of fit() to the script's first line."""
    estimator = Estimator(
        image_uri=IMAGE,
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        container_entry_point=command,
        session=session,
    )
    started = time.time()
    return first_line(estimator.fit(wait=False).logs(follow=True)) - started


if __name__ == "__main__":
    main()
