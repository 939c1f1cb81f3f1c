"""From CreateTrainingJob to the script's first line: in new containers, and in kept ones.

    python tests/benchmarks/warm_pool.py [--pools 3] [--repeats 2]

One pool after the other: a first job in a container of its own, then ``repeats`` jobs that
take it over, each a second after the one before it. The job is a script under `torchrun` on
ml.trn1.2xlarge with both cores. Beside them, a job that asks for no pool. Prints one JSON
object; seconds are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from windtunnel import LocalSession, PyTorch

SCRIPTS = Path(__file__).resolve().parent / "scripts"
KEEP_ALIVE_S = 600


def main() -> None:
    """Measure in a home of the benchmark's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pools", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        session = LocalSession(home=Path(folder) / "home")
        try:
            print(json.dumps(measure(session, arguments.pools, arguments.repeats), indent=2))
        finally:
            session.backend.stop()


def measure(session: LocalSession, pools: int, repeats: int) -> dict[str, Any]:
    """All jobs in turn, after one that does not count."""
    run(session, 0)
    plain, first, second, immediate = [], [], [], []
    for _ in range(pools):
        plain.append(run(session, 0))
        first.append(run(session, KEEP_ALIVE_S))
        for _ in range(repeats):
            time.sleep(1)
            second.append(run(session, KEEP_ALIVE_S))
        immediate.append(run(session, KEEP_ALIVE_S))
        time.sleep(1)
        run(session, 0, counted=False)  # the last in this pool
    medians = {name: statistics.median(v) for name, v in (("first", first), ("second", second))}
    return {
        "first_start_s": round(medians["first"], 2),
        "second_start_s": round(medians["second"], 2),
        "ratio": round(medians["first"] / medians["second"], 1),
        "second_start_at_once_s": round(statistics.median(immediate), 2),
        "start_without_pool_s": round(statistics.median(plain), 2),
        "first_starts_s": [round(value, 2) for value in first],
        "second_starts_s": [round(value, 2) for value in second],
        "pools": pools,
    }


def run(session: LocalSession, keep_alive_s: int, *, counted: bool = True) -> float:
    """One job to its end; seconds from the call of fit() to the first line of the script's first worker."""
    estimator = PyTorch(
        "first_line.py",
        source_dir=str(SCRIPTS),
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        distribution={"torch_distributed": {"enabled": True}},
        keep_alive_period_in_seconds=keep_alive_s or None,
        session=session,
    )
    started = time.time()
    job = estimator.fit(wait=False)
    first = [float(line.split()[1]) for line in job.logs(follow=True) if line.startswith("FIRST ")]
    if not first and counted:
        raise SystemExit(f"{job.name} printed no first line: {job.describe().get('FailureReason')}")
    return min(first, default=0.0) - started


if __name__ == "__main__":
    main()
