"""``windtunnel logs``: the log of a job."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from windtunnel.cli.options import add_place, session_of


def add_parser(commands: Any) -> None:
    """Register the command."""
    logs = commands.add_parser("logs", help="print the log of a job")
    logs.add_argument("name", help="the job's name")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until it has ended; Ctrl-C detaches")
    add_place(logs)
    logs.set_defaults(func=_logs)


def _logs(arguments: argparse.Namespace) -> None:
    from windtunnel.errors import Detached
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob.attach(arguments.name, session_of(arguments))
    _say_why_silent(job.describe())
    try:
        for line in job.logs(follow=arguments.follow):
            print(line, flush=arguments.follow)
    except KeyboardInterrupt:
        raise Detached(job.name) from None


def _say_why_silent(description: Mapping[str, Any]) -> None:
    """Say why there is no log yet: the job waits for its turn."""
    if description.get("SecondaryStatus") == "Pending":
        waits = description["SecondaryStatusTransitions"][-1]["StatusMessage"]
        print(f"windtunnel: {description['TrainingJobName']} is Pending: {waits}", file=sys.stderr)
