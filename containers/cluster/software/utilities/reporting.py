"""`utilities.reporting`, which AWS's public training scripts import and do not bring: writes results.json.

The scripts go without where it is missing. AWS's own is not public. The file has the form that AWS's other
samples write by themselves (`TrainingMetrics` of tp_dp_bert_hf_pretrain in aws-neuron-samples):
``{"results": {"metrics": [{"MetricName", "MeasuredValue", "Units", "Timestamp", "AdditionalData"}],
"parameters": {...}}}``. "Expected" and "Derived", where a script gives them, are named so by us.

No `__init__.py` beside it, so that a script's own folder `utilities` goes on being found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Metric:
    """One measured value. ``expected``, ``derived``: what a test of AWS's would hold it against."""

    name: str
    value: Any
    units: str = ""
    expected: Any = None
    derived: Any = None
    additional: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        held_against = {"Expected": self.expected, "Derived": self.derived}
        return {
            "MetricName": self.name,
            "MeasuredValue": self.value,
            "Units": self.units,
            "Timestamp": datetime.now(timezone.utc).isoformat(),
            "AdditionalData": dict(self.additional or {}),
            **{name: value for name, value in held_against.items() if value is not None},
        }


def post_metrics(
    metrics: Sequence[Metric], parameters: Mapping[str, Any] | None = None, **_destinations: Any
) -> None:
    """Add metrics and parameters to the file. Nothing is sent anywhere, whatever destinations are asked for.

    One process writes it: the scripts call this on their first rank only.
    """
    path = results_file(sys.argv[1:])
    content = _read(path)
    results = content.setdefault("results", {})
    results.setdefault("metrics", []).extend(metric.to_dict() for metric in metrics)
    results.setdefault("parameters", {}).update(parameters or {})
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: who reads it while the script runs finds the file before.
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
    new.replace(path)


def results_file(arguments: Sequence[str]) -> Path:
    """The script's ``--metrics_file``; without it, results.json in its ``--output_dir``, or where it runs."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--metrics_file", type=Path)
    parser.add_argument("--output_dir", type=Path, default=Path())
    given, _ = parser.parse_known_args(list(arguments))
    return Path(given.metrics_file or given.output_dir / "results.json")


def _read(path: Path) -> dict[str, Any]:
    """What the file has; an empty one, or one that is no such file, has nothing."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
