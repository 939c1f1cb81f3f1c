"""``windtunnel diagnostics``: print what to change in a job's script before Trainium."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.exit_codes import EXIT_FAILED
from windtunnel.priceperf.workload.counters import SEVERITIES


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
    parser.add_argument(
        "--fail-on", choices=SEVERITIES, help="exit with 1 if a finding is as severe as this, or more"
    )
    parser.set_defaults(func=_diagnostics)


def _diagnostics(arguments: argparse.Namespace) -> int:
    from windtunnel.job.training_job import TrainingJob

    found = TrainingJob.attach(arguments.job).diagnostics()
    output.show(found, arguments)
    if arguments.fail_on is None:
        return 0
    grave = SEVERITIES[: SEVERITIES.index(arguments.fail_on) + 1]
    return EXIT_FAILED if any(one.severity in grave and one.is_to_change for one in found) else 0
