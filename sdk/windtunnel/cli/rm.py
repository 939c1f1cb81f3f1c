"""``windtunnel rm``: delete jobs that have ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import add_place, session_of
from windtunnel.cli.output import complain
from windtunnel.errors import ConfigurationError, WindtunnelError
from windtunnel.session.training_service import TERMINAL

if TYPE_CHECKING:
    from windtunnel.session.session import Session


def add_parser(commands: Any) -> None:
    """Register the command."""
    remove = commands.add_parser(
        "rm",
        help="delete jobs that have ended: record, tags, metrics, log",
        description="Delete jobs that have ended: record, tags, metrics and (but on AWS) log. What they stored in S3 "
        "stays. A job that runs is left alone.",
    )
    remove.add_argument("names", metavar="JOB", nargs="+", help="the jobs' names")
    add_place(remove)
    remove.set_defaults(func=_remove)


def _remove(arguments: argparse.Namespace) -> int:
    session = session_of(arguments)
    place = " --aws" if arguments.aws else ""
    failed = 0
    for name in dict.fromkeys(arguments.names):
        try:
            _delete(name, session, place)
        except WindtunnelError as error:
            complain(error)
            failed = 1
        else:
            print(f"{name} is deleted.")
    return failed


def _delete(name: str, session: Session, place: str) -> None:
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob(name, session)
    status = job.status()
    if status not in TERMINAL:
        end = f"It ends with: windtunnel stop {name}{place}" if status != "Stopping" else "It will have soon"
        raise ConfigurationError(
            f"{name} is not deleted: it has not ended ({status}). {end}; then delete it."
        )
    job.delete()
