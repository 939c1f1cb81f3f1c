"""Throw generated requests at a real server: does everything get an answer, in AWS's shape, and soon?

    python tests/benchmarks/fuzz.py [--requests 20000] [--seed 1]

Valid and broken requests of every operation that botocore knows of the served services, signed by
botocore, over kept connections, to a server process whose container engine runs nothing. Prints
one JSON object; exits with 1 when the server failed, hung or answered in another shape.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / part) for part in ("", "sdk", "local_backend")]

from tests.fuzz.campaign import Campaign, target  # noqa: E402  the path comes first


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, target(Path(folder) / "home") as server:
        figures = Campaign(server, arguments.seed).run(arguments.requests).summary()
    figures["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(figures))
    return 1 if figures["server_errors"] or figures["malformed_errors"] or figures["hangs"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
