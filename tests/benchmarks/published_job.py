"""AWS's own benchmark job, predicted from a rehearsal of the example: iterations/s, billable seconds, cost.

    python tests/benchmarks/published_job.py [--steps 24] [--counters FILE]

BERT base classifies reviews of Amazon Polarity's schema, batch 8 a core, sequence 128, as in AWS's table
(`windtunnel report --published`). The example's script runs with BERT base's dimensions on 2 simulated
cores for a few steps (minutes); what it counts is modelled on ml.trn1.32xlarge and ml.p4d.24xlarge and set
beside what AWS printed. Nothing of that table is in the calibration of the steps; the time to tokenise a
review is fitted to both of its rows (``crossed``: each taken from the other row). With --counters FILE the
counters are kept there, or read from there where the file exists. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "bert_amazon_polarity"
sys.path.insert(0, str(EXAMPLE))

import prepare_data  # noqa: E402 - of the example
from own_home import leave  # noqa: E402

from windtunnel import LocalSession, PyTorch  # noqa: E402
from windtunnel.priceperf.published.bert_jobs_predicted import predictions  # noqa: E402

CORES = 2
BATCH = 8
BERT_BASE = {
    "model_name": "small",
    "vocab_size": 30_522,
    "embedding_rows": 30_522,
    "num_layers": 12,
    "hidden_size": 768,
    "num_heads": 12,
    "dropout": 0.1,
    "epochs": 1,
    "batch_size": BATCH,
    "learning_rate": 5e-5,
    "max_length": 128,
    "log_every": 1000,
}


def main() -> None:
    """Rehearse, or read what a rehearsal counted, and predict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--counters", type=Path)
    arguments = parser.parse_args()
    if arguments.counters is not None and arguments.counters.exists():
        counters = json.loads(arguments.counters.read_text())
    else:
        counters = rehearse(arguments.steps)
        if arguments.counters is not None:
            arguments.counters.write_text(json.dumps(counters))
    train, found = counters["train"], predictions(counters)
    other = found.crossed
    assert other is not None
    print(
        json.dumps(
            {
                "host_cpu": counters.get("host_cpu"),
                "steps": train["steps"],
                "recording_ms": round(1e3 * train["least_trace_seconds"], 1),
                "instances": [found.trn1.as_dict(), found.p4d.as_dict()],
                "cost_ratio": round(found.cost_ratio, 3),
                "published_cost_ratio": round(found.published_cost_ratio, 3),
                "cost_ratio_error_percent": round(100 * found.cost_ratio_error, 1),
                "crossed": {
                    "billable_s": [other.trn1.estimate.billable_s, other.p4d.estimate.billable_s],
                    "cost_ratio": round(other.cost_ratio, 3),
                    "cost_ratio_error_percent": round(100 * other.cost_ratio_error, 1),
                },
            },
            indent=2,
        )
    )


def rehearse(steps: int) -> dict[str, Any]:
    """The counters of the example's script with BERT base's dimensions."""
    with tempfile.TemporaryDirectory() as folder:
        data = prepare_data.prepare(
            Path(folder) / "data", train=steps * CORES * BATCH, held_out=4 * CORES * BATCH, source="generated"
        )
        session = LocalSession(home=Path(folder) / "home")
        try:
            job = PyTorch(
                "train.py",
                source_dir=str(EXAMPLE / "scripts"),
                framework_version="2.9",
                instance_type="ml.trn1.32xlarge",
                instance_count=1,
                local_cores=CORES,
                distribution={"torch_distributed": {"enabled": True}},
                hyperparameters=BERT_BASE,
                session=session,
            ).fit({"train": str(data.train), "val": str(data.val)}, logs=False)
            return dict(job.counters())
        finally:
            leave(session)


if __name__ == "__main__":
    main()
