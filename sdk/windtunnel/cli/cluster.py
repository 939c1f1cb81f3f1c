"""``windtunnel cluster report``: the bill of a Slurm job, and what it would take on 1 to 64 real nodes.

All other commands after ``cluster`` are run by the backend.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.options import (
    add_sizes,
    add_user_calibration,
    day,
    full_scale_of,
    user_calibration_of,
)
from windtunnel.errors import WindtunnelError

REPORT = ["cluster", "report"]


def add_parser(commands: Any, text: str, words: Iterable[str]) -> None:
    """Register the command. ``text``: its line in `--help`; ``words``: the backend's commands after ``cluster``."""
    own = commands.add_parser("cluster", help=text).add_subparsers(required=True, metavar="COMMAND")
    for word in words:
        own.add_parser(word, help=f"windtunnel cluster {word} --help says more", add_help=False)
    report = own.add_parser(
        "report",
        help="the bill of a Slurm job, and its time and cost on 1 to 64 real nodes",
        epilog=f"Seconds here are a simulation's. {output.MODELLED}",
    )
    report.add_argument("name", metavar="NAME", help="the cluster")
    report.add_argument("job", metavar="JOBID", help="as squeue prints it; for a task of an array, 2_0")
    output.add_arguments(report, full=True)
    report.add_argument(
        "--prices-on", type=day, metavar="DATE", help="use that day's prices (default: the newest)"
    )
    add_user_calibration(report)
    add_sizes(report)
    report.set_defaults(func=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Print the report. Returns the exit code."""
    from windtunnel.reports.cluster.report import cluster_report

    full_scale = full_scale_of(args)
    report = cluster_report(
        _job(args.name, args.job),
        full_scale,
        on=args.prices_on,
        user_calibration=user_calibration_of(args),
    )
    return output.show(report, args)


def _job(name: str, number: str) -> Mapping[str, Any]:
    """What the backend knows of the job. Its error message is raised as a `WindtunnelError`."""
    command = [sys.executable, "-m", "windtunnel_local", "cluster", "job", name, number, "--json"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise WindtunnelError(f"{sys.executable} cannot be started: {error.strerror}") from error
    if asked.returncode:
        said = asked.stderr.strip().removeprefix("windtunnel: ")
        raise WindtunnelError(said or f"the backend ended with exit code {asked.returncode}")
    found: Mapping[str, Any] = json.loads(asked.stdout)
    return found
