"""Server, engine and containers killed at random moments while four jobs run: is anything lost?

    python tests/benchmarks/faults.py [--rounds 200] [--seed 1]

Each round starts four jobs, kills one thing with SIGKILL at a random moment, starts it again, and
compares what the jobs left (state, artifacts, every line of the log) with what their scripts wrote
down. A line that a killed engine had read and not written down yet is in neither its log nor ours, and
is counted apart. The engine is a private one: see tests/faults/engine.py. Needs root. Prints one JSON object;
what went wrong goes to stderr, with the round.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "sdk"), str(ROOT / "local_backend")]

from tests.faults.rounds import JobStage, Round  # noqa: E402 - where it is was said just now
from tests.faults.stage import KINDS  # noqa: E402


def main() -> None:
    """Play the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)  # noqa: S311 - reproducible, not secret
    begun = time.monotonic()
    played: list[Round] = []
    with JobStage(rng) as stage:
        for number in range(arguments.rounds):
            # Every kind as often as the others, in a random order.
            if number % len(arguments.kinds) == 0:
                turn = rng.sample(arguments.kinds, len(arguments.kinds))
            one = stage.play(turn[number % len(arguments.kinds)])
            played.append(one)
            print(f"{number}: {one.kind} at {one.moment_s:.2f} s, {one.seconds:.1f} s", file=sys.stderr)
            for fault in one.faults:
                print(f"    {fault}", file=sys.stderr)
        figures = summary(played) | {"forgotten_by_killed_engines": stage.forgotten()}
    figures |= {"seed": arguments.seed, "seconds": round(time.monotonic() - begun, 1)}
    print(json.dumps(figures, indent=2))


def summary(played: list[Round]) -> dict[str, Any]:
    """The figures of all rounds."""
    verdicts = [verdict for one in played for verdict in one.verdicts]
    return {
        "rounds": len(played),
        "rounds_by_kind": dict(Counter(one.kind for one in played)),
        "jobs": len(verdicts),
        "jobs_by_status": dict(Counter(verdict.status for verdict in verdicts)),
        "failed_as_they_should": dict(
            Counter(o.kind for o in played for v in o.verdicts if v.status == "Failed")
        ),
        "wrong_states_or_artifacts": sum(len(verdict.wrong) for verdict in verdicts),
        "lines": sum(verdict.printed for verdict in verdicts),
        "lost_lines": sum(verdict.lost for verdict in verdicts),
        "lines_lost_in_killed_engines": sum(verdict.lost_by_engine for verdict in verdicts),
        "repeated_lines": sum(verdict.repeated for verdict in verdicts),
        "disordered_lines": sum(verdict.disordered for verdict in verdicts),
        "leftovers": sum(len(one.leftovers) for one in played),
        "slowest_recovery_s": round(max(one.recovery_s for one in played), 2),
        "slowest_round_s": round(max(one.seconds for one in played), 1),
    }


if __name__ == "__main__":
    main()
