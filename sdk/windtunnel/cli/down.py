"""``windtunnel down``: end the local backend."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from windtunnel.errors import WindtunnelError
from windtunnel.session.training_service import EVERY_JOB, STATUSES, TERMINAL

if TYPE_CHECKING:
    from windtunnel.session.local import LocalSession


def add_parser(commands: Any) -> None:
    """Register the command."""
    down = commands.add_parser(
        "down",
        help="end the local backend; jobs go on",
        description=(
            "End the local backend, so that the next one starts with new settings. Running jobs "
            "and endpoints go on, and the next backend takes them over; until then no job ends by its "
            "max_run or by a stop's grace time."
        ),
    )
    down.set_defaults(func=_down)


def _down(_: argparse.Namespace) -> None:
    from windtunnel.session.resolve import shared_local_session

    session = shared_local_session()
    backend = session.backend
    backend.release()
    running = backend.running()
    going_on = _going_on(session) if running is not None and not running.outdated else []
    left = backend.stop()
    print(
        "No local backend was running."
        if left is None
        else f"The local backend at {left.endpoint} has ended."
    )
    if going_on:
        print(
            f"Not ended: {', '.join(going_on)}. Until the next command starts a backend, neither max_run nor the "
            "grace time of a stop ends a job.",
            file=sys.stderr,
        )


def _going_on(session: LocalSession) -> list[str]:
    """What the backend leaves behind, each with kind, name and status; nothing if it does not answer."""
    with suppress(WindtunnelError):
        unfinished = [status for status in STATUSES if status not in TERMINAL]
        jobs = [job for status in unfinished for job in session.service.list_jobs(EVERY_JOB, status)]
        endpoints = [one for one in session.endpoints.list_all() if one["EndpointStatus"] != "Failed"]
        return [
            *(f"job {job['TrainingJobName']} ({job['TrainingJobStatus']})" for job in jobs),
            *(f"transform job {name} (InProgress)" for name in session.transforms.in_progress()),
            *(f"endpoint {one['EndpointName']} ({one['EndpointStatus']})" for one in endpoints),
        ]
    return []
