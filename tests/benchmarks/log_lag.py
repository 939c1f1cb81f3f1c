"""From print() in a job's container to the line in the hands of who follows its log.

    python tests/benchmarks/log_lag.py

Prints one JSON object; 0.3 s is what a reader takes for at once.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from windtunnel import LocalSession, PyTorch


def main() -> None:
    """Measure in a home of the benchmark's own."""
    with tempfile.TemporaryDirectory() as folder:
        session = LocalSession(home=Path(folder) / "home")
        try:
            lags = sorted(lags_of_a_job(session))
        finally:
            session.backend.stop()
    count = len(lags)
    figures = {"median_s": lags[count // 2], "p90_s": lags[count * 9 // 10], "largest_s": lags[-1]}
    print(json.dumps({"lines": count, **{name: round(lag, 3) for name, lag in figures.items()}}, indent=2))


def lags_of_a_job(session: LocalSession) -> list[float]:
    """Seconds of each line."""
    job = PyTorch(
        "timed_lines.py",
        source_dir=str(Path(__file__).resolve().parent / "scripts"),
        framework_version="2.9",
        instance_type="ml.trn1.2xlarge",
        instance_count=1,
        session=session,
    ).fit(wait=False)
    lines = job.logs(follow=True)
    return [time.time() - float(line.split()[1]) for line in lines if line.startswith("LINE ")]


if __name__ == "__main__":
    main()
