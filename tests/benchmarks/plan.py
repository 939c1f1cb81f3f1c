"""How long a search for plans takes: some 10,000 ways to run one job, all looked at.

    python tests/benchmarks/plan.py

Prints one JSON object. ``plan_10k_s``: seconds for the search of ``candidates`` ways for
Llama-3.1-8B on two instance types and every number of them from 1 to 64, from nothing kept; ``fitting`` of them
fit the memory and were timed by the model, ``plans`` have time, cost and intervals. The median of ``ROUNDS``
processes, since a search keeps what it has found out.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

from windtunnel.priceperf import ARCHITECTURES, FullScale
from windtunnel.priceperf.money.plan import plans
from windtunnel.priceperf.workload.splits import OpenSplit

ROUNDS = 5
INSTANCES = ("trn1", "p4d")
GLOBAL_BATCH = 1440
"""With many divisors, as numbers of instances have them."""


def once() -> dict[str, float]:
    """One search in this process."""
    model = ARCHITECTURES["Llama-3.1-8B"]
    job = OpenSplit(model, model.parameters, 4096, GLOBAL_BATCH)
    start = time.perf_counter()
    found = plans(job, INSTANCES, FullScale(1_000_000, compile_cached=True))
    assert found.pareto
    return {
        "plan_10k_s": time.perf_counter() - start,
        "candidates": found.candidates,
        "fitting": found.fitting,
        "plans": len(found.plans),
    }


def main() -> None:
    """Measure in fresh processes, and print."""
    if "--once" in sys.argv:
        print(json.dumps(once()))
        return
    rounds = [
        json.loads(
            subprocess.run([sys.executable, __file__, "--once"], check=True, capture_output=True).stdout
        )
        for _ in range(ROUNDS)
    ]
    middle = statistics.median(item["plan_10k_s"] for item in rounds)
    print(json.dumps({**rounds[0], "plan_10k_s": round(middle, 2)}))


if __name__ == "__main__":
    main()
