"""Server, engine and container of an endpoint killed at random moments under load: does it come back by itself?

    python tests/benchmarks/endpoint_faults.py [--rounds 50] [--seed 1]

Four clients ask all the time. Each round kills one thing with SIGKILL and starts it again, or has it started.
A fault is a request that hangs, an answer to another question, an error that is not in AWS's shape, or an endpoint
that is not InService afterwards. The engine is a private one: see tests/faults/engine.py. Needs root. Prints one
JSON object; what went wrong goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "sdk"), str(ROOT / "local_backend")]

from tests.faults.endpoint_rounds import EndpointStage, Round  # noqa: E402 - where it is was said just now
from tests.faults.stage import KINDS  # noqa: E402


def main() -> None:
    """Play the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    played: list[Round] = []
    with EndpointStage(random.Random(arguments.seed)) as stage:  # noqa: S311 - reproducible, not secret
        for number in range(arguments.rounds):
            one = stage.play(KINDS[number % len(KINDS)])
            played.append(one)
            print(
                f"{number}: {one.kind}, back after {one.recovery_s:.1f} s",
                *one.faults,
                sep="\n    ",
                file=sys.stderr,
            )
        left = stage.left()
    recovery = {kind: [one.recovery_s for one in played if one.kind == kind] for kind in KINDS}
    figures = {
        "rounds": len(played),
        "faults": sum(len(one.faults) for one in played) + len(left),
        "answered": sum(one.answered for one in played),
        "failed": dict(sum((one.failed for one in played), Counter())),
        "slowest_s": round(max(one.slowest_s for one in played), 1),
        "recovery_s_median": {
            kind: round(statistics.median(values), 2) for kind, values in recovery.items() if values
        },
        "left": left,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
