"""``windtunnel diagnostics``: print what to change in a job's script before Trainium."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli import output


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "diagnostics",
        help="what to change in a job's script, worst first",
        description="Graphs that keep compiling, values read in the loop, operations on the CPU, device memory, "
        "waiting for input: found in the rehearsal, each with the line to change.",
    )
    parser.add_argument("job", metavar="JOB", help="name of a training job")
    output.add_arguments(parser, charts=False)
    parser.set_defaults(func=_diagnostics)


def _diagnostics(arguments: argparse.Namespace) -> int:
    from windtunnel.job.training_job import TrainingJob

    return output.show(TrainingJob.attach(arguments.job).diagnostics(), arguments)
