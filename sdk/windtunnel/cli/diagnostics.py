"""``windtunnel diagnostics``: what Trainium would tell too late about a job's script."""

from __future__ import annotations

import argparse
from typing import Any


def add_parsers(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "diagnostics",
        help="what to change in a job's script, worst first",
        description="Graphs that keep compiling, values read in the loop, operations on the CPU, device memory, "
        "waiting for input: found in the rehearsal, each with the line to change.",
    )
    parser.add_argument("job", metavar="JOB", help="name of a training job")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=_diagnostics)


def _diagnostics(arguments: argparse.Namespace) -> None:
    from windtunnel.job import TrainingJob

    found = TrainingJob.attach(arguments.job).diagnostics()
    if arguments.json:
        print(found.to_json())
        return
    from rich.console import Console

    Console(highlight=False).print(found)
