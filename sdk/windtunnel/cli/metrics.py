"""``windtunnel metrics``: the values that a job's metric_definitions found, over time."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.options import add_place, job_of


def add_parser(commands: Any) -> None:
    """Register the command."""
    metrics = commands.add_parser(
        "metrics",
        help="the metrics from a job's log, over time",
        description="The metrics of a job's metric_definitions (windtunnel run --metric) over time, as CloudWatch "
        "has them, and their final values.",
    )
    metrics.add_argument("name", help="the job's name")
    output.add_arguments(metrics)
    add_place(metrics)
    metrics.set_defaults(func=_metrics)


def _metrics(arguments: argparse.Namespace) -> int:
    return output.show(job_of(arguments).metric_series(), arguments)
