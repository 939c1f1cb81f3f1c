"""``windtunnel rm``: delete jobs that have ended, or endpoints."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import add_place, session_of
from windtunnel.cli.output import of_each
from windtunnel.errors import ConfigurationError
from windtunnel.session.training_service import TERMINAL

if TYPE_CHECKING:
    from windtunnel.session.session import Session


def add_parser(commands: Any) -> None:
    """Register the command."""
    remove = commands.add_parser(
        "rm",
        help="delete jobs that have ended (record, tags, metrics, log), or endpoints",
        description="Delete jobs that have ended: record, tags, metrics and (but on AWS) log. What they stored in S3 "
        "stays. A job that runs is left alone. With --endpoint: endpoints that are not Creating or Updating, with "
        "their configurations and models.",
    )
    remove.add_argument("names", metavar="NAME", nargs="+", help="the jobs' names")
    remove.add_argument("--endpoint", action="store_true", help="the names are endpoints")
    add_place(remove)
    remove.set_defaults(func=_remove)


def _remove(arguments: argparse.Namespace) -> int:
    session = session_of(arguments)
    delete = _delete_endpoint if arguments.endpoint else _delete

    def deleted(name: str) -> str:
        delete(name, session)
        return f"{name} is deleted."

    return of_each(arguments.names, deleted)


def _delete(name: str, session: Session) -> None:
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob(name, session)
    status = job.status()
    if status not in TERMINAL:
        end = (
            f"It ends with: windtunnel stop {name}{session.place}"
            if status != "Stopping"
            else "It will have soon"
        )
        raise ConfigurationError(
            f"{name} is not deleted: it has not ended ({status}). {end}; then delete it."
        )
    job.delete()


def _delete_endpoint(name: str, session: Session) -> None:
    from windtunnel.hosting.endpoint import Endpoint

    Endpoint(name, session).delete(models=True)
