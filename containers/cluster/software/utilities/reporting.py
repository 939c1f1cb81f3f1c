"""`utilities.reporting`, which AWS's public training scripts import but do not contain: writes results.json.

The scripts also run without it. AWS's own module is not public. The file has the form that AWS's other samples
write by themselves (`TrainingMetrics` of tp_dp_bert_hf_pretrain in aws-neuron-samples):
``{"results": {"metrics": [{"MetricName", "MeasuredValue", "Units", "Timestamp", "AdditionalData"}],
"parameters": {...}}}``. The names "Expected" and "Derived", for values that a script may give, are ours.

This folder has no `__init__.py`, so that a script's own folder `utilities` is still found.
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
    """One measured value. ``expected``, ``derived``: values with which AWS's own tests would compare it."""

    name: str
    value: Any
    units: str = ""
    expected: Any = None
    derived: Any = None
    additional: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The metric in the form of the file."""
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
    """Add metrics and parameters to the file. Nothing is sent to the destinations that are asked for.

    Only one process may write the file: the scripts call this on their first rank only.
    """
    path = results_file(sys.argv[1:])
    content = _read(path)
    results = content.setdefault("results", {})
    results.setdefault("metrics", []).extend(metric.to_dict() for metric in metrics)
    results.setdefault("parameters", {}).update(parameters or {})
    path.parent.mkdir(parents=True, exist_ok=True)
    # Replaced as a whole: a reader sees the old file or the new one.
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
    new.replace(path)


def results_file(arguments: Sequence[str]) -> Path:
    """The script's ``--metrics_file``; default: results.json in its ``--output_dir`` or the current folder."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--metrics_file", type=Path)
    parser.add_argument("--output_dir", type=Path, default=Path())
    given, _ = parser.parse_known_args(list(arguments))
    return Path(given.metrics_file or given.output_dir / "results.json")


def _read(path: Path) -> dict[str, Any]:
    """The content of the file; empty if it cannot be read or holds no JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
