"""`windtunnel up | down | ps | logs | stop`: the backend and the jobs there are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from windtunnel.session.training_service import TERMINAL

if TYPE_CHECKING:
    from windtunnel.session.session import Session


def add_parsers(commands: Any) -> None:
    """Register the commands of this module."""
    up = commands.add_parser(
        "up",
        help="start the local backend and show how other SDKs reach it",
        description="Start the local backend, or find the running one. It leaves by itself when it is idle, "
        "unless `windtunnel env` has asked for it.",
    )
    up.set_defaults(func=_up)

    down = commands.add_parser(
        "down",
        help="let the local backend leave; jobs go on",
        description="Let the local backend leave, so that the next one starts with new settings. "
        "Running jobs go on, and the next backend takes them over.",
    )
    down.set_defaults(func=_down)

    listing = commands.add_parser("ps", help="list training jobs, newest first")
    listing.add_argument("-n", "--limit", type=_positive, default=20, help="how many (default: 20)")
    add_place(listing)
    listing.set_defaults(func=_ps)

    logs = commands.add_parser("logs", help="print the log of a job")
    logs.add_argument("name", help="the job's name")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until it has ended; Ctrl-C detaches")
    add_place(logs)
    logs.set_defaults(func=_logs)

    stop = commands.add_parser("stop", help="stop a job: SIGTERM, then SIGKILL after its grace time")
    stop.add_argument("name", help="the job's name")
    add_place(stop)
    stop.set_defaults(func=_stop)


def add_place(parser: argparse.ArgumentParser) -> None:
    """``--aws``: real SageMaker instead of the local backend."""
    parser.add_argument("--aws", action="store_true", help="on AWS, with your usual credentials")


def session_of(arguments: argparse.Namespace) -> Session:
    """The session a command works with."""
    from windtunnel.session.aws import AwsSession
    from windtunnel.session.resolve import shared_local_session

    return AwsSession() if arguments.aws else shared_local_session()


def _up(_: argparse.Namespace) -> None:
    from windtunnel.session.resolve import shared_local_session

    backend = shared_local_session().backend
    running = backend.ensure()
    print(f"The local backend {running.version} runs at {running.endpoint} (runner: {running.runner}).")
    print(f"State: {backend.home}")
    print('\nboto3, the AWS CLI and SageMaker\'s own SDKs reach it after: eval "$(windtunnel env)"')


def _down(_: argparse.Namespace) -> None:
    from windtunnel.session.resolve import shared_local_session

    backend = shared_local_session().backend
    backend.release()
    left = backend.stop()
    print(
        "No local backend was running." if left is None else f"The local backend at {left.endpoint} has left."
    )


def _ps(arguments: argparse.Namespace) -> None:
    summaries = session_of(arguments).service.list_jobs(arguments.limit)
    if not summaries:
        print("No training jobs.", file=sys.stderr)
        return
    rows = [("NAME", "STATUS", "CREATED", "TOOK"), *(_row(summary) for summary in summaries)]
    _print_table(rows)


def _row(summary: Mapping[str, Any]) -> tuple[str, ...]:
    created: datetime = summary["CreationTime"]
    over = summary["TrainingJobStatus"] in TERMINAL
    last = summary.get("TrainingEndTime") or summary.get("LastModifiedTime") if over else None
    ended: datetime = last or datetime.now(timezone.utc)
    return (
        str(summary["TrainingJobName"]),
        _status(summary),
        created.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
        _duration((ended - created).total_seconds()),
    )


def _status(description: Mapping[str, Any]) -> str:
    """The status; Pending while the job waits in the line, for nothing of it runs yet."""
    secondary = description.get("SecondaryStatus")
    return str(secondary if secondary == "Pending" else description["TrainingJobStatus"])


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


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
    """A job that waits in the line prints nothing: say so, beside the log."""
    if description.get("SecondaryStatus") == "Pending":
        waits = description["SecondaryStatusTransitions"][-1]["StatusMessage"]
        print(f"windtunnel: {description['TrainingJobName']} is Pending: {waits}", file=sys.stderr)


def _stop(arguments: argparse.Namespace) -> None:
    from windtunnel.job.training_job import TrainingJob

    job = TrainingJob.attach(arguments.name, session_of(arguments))
    status = job.status()
    if status in TERMINAL:
        print(f"{job.name} has ended already: {status}.")
        return
    job.stop()
    print(f"{job.name} is stopping. windtunnel logs -f {job.name} shows how it ends.")


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1 is needed")
    return number
