"""``windtunnel stop``: stop a job."""

from __future__ import annotations

import argparse
from typing import Any

from windtunnel.cli.options import add_place, session_of
from windtunnel.session.training_service import TERMINAL


def add_parser(commands: Any) -> None:
    """Register the command."""
    stop = commands.add_parser("stop", help="stop a job: SIGTERM, then SIGKILL after its grace time")
    stop.add_argument("name", help="the job's name")
    add_place(stop)
    stop.set_defaults(func=_stop)


def _stop(arguments: argparse.Namespace) -> None:
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob.attach(arguments.name, session_of(arguments))
    status = job.status()
    if status in TERMINAL:
        print(f"{job.name} has ended already: {status}.")
        return
    job.stop()
    print(f"{job.name} is stopping. windtunnel logs -f {job.name}{job.session.place} shows how it ends.")
