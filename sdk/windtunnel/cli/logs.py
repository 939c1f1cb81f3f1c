"""``windtunnel logs``: the log of a job, or why it has none."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from windtunnel.cli.amounts import count
from windtunnel.cli.options import add_place, job_of
from windtunnel.cli.output import Status, complain
from windtunnel.errors import Detached
from windtunnel.rendering.format import one_line
from windtunnel.session.training_service import TERMINAL

_WITHOUT_A_LOG = frozenset({"Starting", "Pending", "LaunchingMLInstances", "Downloading"})


def add_parser(commands: Any) -> None:
    """Register the command."""
    logs = commands.add_parser(
        "logs",
        help="print the log of a job",
        epilog=(
            "Exit code: 0 there is a log (stderr says how the job ended); 1 there is none. "
            "`windtunnel run` ends with 1 if its job did not complete."
        ),
    )
    logs.add_argument("name", help="the job's name")
    logs.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="go on until the job has ended; Ctrl-C ends this command only",
    )
    logs.add_argument(
        "-n", "--lines", type=count, metavar="N", help="only the last N lines that exist already"
    )
    logs.add_argument(
        "-a",
        "--all",
        action="store_true",
        help="also the environment that AWS's toolkit prints (otherwise one line stands for it)",
    )
    add_place(logs)
    logs.set_defaults(func=_logs)


def _logs(arguments: argparse.Namespace) -> int:
    job = job_of(arguments)
    before = job.describe()
    _say_why_silent(before)
    printed = False
    try:
        lines = job.logs(follow=arguments.follow, last=arguments.lines, fold=not arguments.all)
        for line in lines:
            print(line, flush=arguments.follow)
            printed = True
    except KeyboardInterrupt:
        raise Detached(job.name, job.session.place) from None
    return _say_how_it_ended(job.describe() if arguments.follow else before, printed=printed)


def _say_why_silent(description: Mapping[str, Any]) -> None:
    """Print why there is no log yet: the job waits in the queue, or its containers are being prepared."""
    secondary = description.get("SecondaryStatus")
    if secondary in _WITHOUT_A_LOG:
        waits = description["SecondaryStatusTransitions"][-1].get("StatusMessage", "")
        complain(f"{description['TrainingJobName']} is {secondary}: {one_line(waits)}")


def _say_how_it_ended(description: Mapping[str, Any], *, printed: bool) -> int:
    """Print why a job has not completed, or has no log. Returns the exit code: 1 if it ended without a log."""
    name, status = description["TrainingJobName"], Status.of(description)
    reason = one_line(description.get("FailureReason", ""))
    from windtunnel.job.next_step import next_step
    from windtunnel.job.outcome import why_stopped

    if printed or description["TrainingJobStatus"] not in TERMINAL:
        if reason:
            complain(f"{name} has failed: {reason}")
        elif description["TrainingJobStatus"] == "Stopped":
            complain(f"{name} has not completed: {why_stopped(description)}.")
        return 0
    complain(f"{name} has no log: {reason or f'it ended as {status} before it printed anything.'}")
    if reason:
        complain(f"next: {next_step(reason, description)}")
    return 1
