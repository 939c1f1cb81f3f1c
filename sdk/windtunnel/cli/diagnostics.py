"""``windtunnel diagnostics``: print what to change in a job's script before Trainium."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.exit_codes import EXIT_FAILED
from windtunnel.cli.options import job_of
from windtunnel.priceperf.workload.counters import SEVERITIES, Diagnostic

_WRONG_RESULT = "wrong-result"


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "diagnostics",
        help="what to change in a job's script, worst first",
        description="Graphs that keep compiling, values read in the loop, operations on the CPU, device memory, "
        "waiting for input: found in the rehearsal, each with the line to change.",
    )
    parser.add_argument("name", metavar="JOB", help="name of a training job")
    output.add_arguments(parser, charts=False)
    parser.add_argument(
        "--fail-on",
        choices=(SEVERITIES[0], _WRONG_RESULT, *SEVERITIES[1:]),
        help="exit with 1 if a finding is as severe as this, or more; wrong-result: an error, or a warning that the "
        "script may not train what it means to. XLA's compile time here, which is not trn1's, never counts",
    )
    parser.set_defaults(func=_diagnostics, aws=False)


def _diagnostics(arguments: argparse.Namespace) -> int:
    found = job_of(arguments).diagnostics()
    output.show(found, arguments)
    if arguments.fail_on is None:
        return 0
    return EXIT_FAILED if any(_fails(one, arguments.fail_on) for one in found) else 0


def _fails(one: Diagnostic, fail_on: str) -> bool:
    if fail_on == _WRONG_RESULT:
        return one.severity == SEVERITIES[0] or one.trains_wrongly
    return one.severity in SEVERITIES[: SEVERITIES.index(fail_on) + 1] and one.is_to_change
