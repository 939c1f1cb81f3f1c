"""``windtunnel stop``: stop jobs."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import add_place, session_of
from windtunnel.cli.output import of_each
from windtunnel.errors import TrainingJobFailed
from windtunnel.session.training_service import TERMINAL

if TYPE_CHECKING:
    from windtunnel.job.training_job import TrainingJob
    from windtunnel.session.session import Session


def add_parser(commands: Any) -> None:
    """Register the command."""
    stop = commands.add_parser("stop", help="stop jobs: SIGTERM, then SIGKILL after their grace time")
    stop.add_argument("names", metavar="NAME", nargs="+", help="the jobs' names")
    stop.add_argument("--wait", action="store_true", help="until all have ended (default: return at once)")
    add_place(stop)
    stop.set_defaults(func=_stop)


def _stop(arguments: argparse.Namespace) -> int:
    session = session_of(arguments)
    stopping: list[TrainingJob] = []
    code = of_each(arguments.names, lambda name: _stopped(name, session, stopping))
    if arguments.wait:
        for job in stopping:
            with suppress(TrainingJobFailed):  # it has ended, which is all that was asked for
                job.wait(logs=False)
            print(f"{job.name} has ended: {job.status()}.")
    return code


def _stopped(name: str, session: Session, stopping: list[TrainingJob]) -> str:
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob.attach(name, session)
    status = job.status()
    if status in TERMINAL:
        return f"{job.name} has ended already: {status}."
    job.stop()
    stopping.append(job)
    return f"{job.name} is stopping. windtunnel logs -f {job.name}{job.session.place} shows how it ends."
