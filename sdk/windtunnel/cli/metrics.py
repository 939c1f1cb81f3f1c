"""``windtunnel metrics``: what a job's metric_definitions found, over time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windtunnel.cli import output
from windtunnel.cli.options import add_place, session_of

if TYPE_CHECKING:
    from windtunnel.job.metric_series import MetricSeries


def add_parser(commands: Any) -> None:
    """Register the command."""
    metrics = commands.add_parser(
        "metrics",
        help="the metrics that a job's log held, over time",
        description="The metrics of a job's metric_definitions (windtunnel run --metric) over time, as CloudWatch "
        "has them, and their final values.",
    )
    metrics.add_argument("name", help="the job's name")
    metrics.add_argument("--json", action="store_true", help="print JSON")
    add_place(metrics)
    metrics.set_defaults(func=_metrics)


def _metrics(arguments: argparse.Namespace) -> None:
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob.attach(arguments.name, session_of(arguments))
    series, final = job.metric_series(), job.metrics()
    if arguments.json:
        print(json.dumps(_data(series, final), indent=4))
        return
    if not any(series.points.values()) and not final:
        print(f"windtunnel: the log of {job.name} has held no value of a metric.", file=sys.stderr)
        return
    output.show_table(_table(series, final))
    print(f"windtunnel: a line is the average of its {series.period_s:,} s.", file=sys.stderr)


def _data(series: MetricSeries, final: Mapping[str, float]) -> dict[str, Any]:
    points = {
        name: [{"time": p.time.isoformat(), "average": p.average, "samples": p.samples} for p in found]
        for name, found in series.points.items()
    }
    return {"period_seconds": series.period_s, "series": points, "final": dict(final)}


def _table(series: MetricSeries, final: Mapping[str, float]) -> list[tuple[str, ...]]:
    """A line for each period in which any metric had a value, and the final values below."""
    names = list(series.points)
    by_time = {name: {p.time: p.average for p in found} for name, found in series.points.items()}
    times = sorted({time for found in by_time.values() for time in found})
    lines = [(output.local_time(time), *(_cell(by_time[name].get(time)) for name in names)) for time in times]
    ends = [("final", *(_cell(final.get(name)) for name in names))] if final else []
    return [("TIME", *names), *lines, *ends]


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
