"""AWS's own benchmark job from `fit()` to the answer: seconds, and what it predicts.

    python tests/benchmarks/rehearsal.py [--batches N] [--counters FILE]

BERT base classifies reviews of Amazon Polarity's schema, batch 8 a core, sequence 128, as in AWS's table
(`windtunnel report --published`). The example's script runs with BERT base's dimensions and loaders as long as AWS's
in a short rehearsal; what it counts is modelled on ml.trn1.32xlarge and ml.p4d.24xlarge and set beside what AWS
printed. Nothing of that table is in the calibration of the device; the speed of its host (`host_tracing.REFERENCE_S`)
lies between what it tells and what another's log tells, and the time to tokenise a review is fitted to both of its rows
(``crossed``: each taken from the other row). With --counters FILE the counters are kept there, or read from there where
the file exists. Prints one JSON object; ``seconds`` are from `fit()` to the report, measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "bert_amazon_polarity"
sys.path.insert(0, str(EXAMPLE))

import prepare_data  # noqa: E402 - of the example
import run  # noqa: E402

from windtunnel import LocalSession, PyTorch  # noqa: E402
from windtunnel.estimator.for_place import SHORT  # noqa: E402
from windtunnel.priceperf import CountedWorkload  # noqa: E402
from windtunnel.priceperf.published.bert_jobs_predicted import predictions  # noqa: E402

JOB = {**run.BASE, "log_every": 1_000_000}
WHOLE = (3_600_000, 400_000)


def main() -> None:
    """Rehearse, or read what a rehearsal counted, and predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=SHORT, help="of a pass")
    parser.add_argument("--counters", type=Path)
    arguments = parser.parse_args()
    seconds = None
    if arguments.counters is not None and arguments.counters.exists():
        counters = json.loads(arguments.counters.read_text())
    else:
        counters, seconds = rehearse(arguments.batches)
        if arguments.counters is not None:
            arguments.counters.write_text(json.dumps(counters))
    train, found = counters["train"], predictions(counters)
    scale = CountedWorkload.from_counters(counters).full_scale()
    low, high = found.saving_interval
    other = found.crossed
    assert other is not None
    print(
        json.dumps(
            {
                "host_cpu": counters.get("host_cpu"),
                "seconds": seconds,
                "full_scale_seen": (scale.train_samples, scale.evaluation_samples) == WHOLE,
                "it_s": {
                    name: {
                        "predicted": round(item.iterations_per_second, 2),
                        "interval": [round(end, 2) for end in item.iterations_interval],
                        "published": item.job.iterations_per_second,
                    }
                    for name, item in (("trn1.32xlarge", found.trn1), ("p4d.24xlarge", found.p4d))
                },
                "saving_percent": round(100 * (1 - found.cost_ratio), 1),
                "interval": [round(100 * low, 1), round(100 * high, 1)],
                "published_saving_percent": round(100 * (1 - found.published_cost_ratio), 1),
                "steps": train["steps"],
                "recording_ms": round(1e3 * train["least_trace_seconds"], 1),
                "reference_ms": train["reference_seconds"] and round(1e3 * train["reference_seconds"], 2),
                "instances": [found.trn1.as_dict(), found.p4d.as_dict()],
                "crossed": {
                    "billable_s": [other.trn1.estimate.billable_s, other.p4d.estimate.billable_s],
                    "cost_ratio": round(other.cost_ratio, 3),
                    "cost_ratio_error_percent": round(100 * other.cost_ratio_error, 1),
                },
            },
            indent=2,
        )
    )


def rehearse(batches: int) -> tuple[dict[str, Any], float]:
    """The counters of the example's script with BERT base's dimensions, and seconds from `fit()` to a report."""
    with tempfile.TemporaryDirectory() as folder:
        data = prepare_data.prepare(Path(folder) / "data", train=4_000, held_out=1_000, source="generated")
        session = LocalSession(home=Path(folder) / "home")
        try:
            estimator = PyTorch(
                "bert_whole.py",
                source_dir=str(Path(__file__).parent / "scripts"),
                dependencies=[str(EXAMPLE / "scripts" / "train.py")],
                framework_version="2.9",
                instance_type="ml.trn1.32xlarge",
                instance_count=1,
                distribution={"torch_distributed": {"enabled": True}},
                hyperparameters=JOB,
                session=session,
            )
            started = time.monotonic()
            job = estimator.fit(
                {"train": str(data.train), "val": str(data.val)}, logs=False, rehearse=batches
            )
            str(job.report())
            seconds = round(time.monotonic() - started, 1)
            return dict(job.counters()), seconds
        finally:
            session.backend.stop()


if __name__ == "__main__":
    main()
