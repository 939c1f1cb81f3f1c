"""``windtunnel ps``: list the training jobs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from windtunnel.cli import output
from windtunnel.cli.amounts import count
from windtunnel.cli.options import add_place, session_of
from windtunnel.errors import JobNotFound
from windtunnel.rendering.format import local_time, one_line
from windtunnel.reports.failure import in_short
from windtunnel.session.training_service import EVERY_JOB, STATUSES, TERMINAL
from windtunnel.settings import REHEARSE_VARIABLE

_REASON_WIDTH = 80


def add_parser(commands: Any) -> None:
    """Register the command."""
    listing = commands.add_parser("ps", help="list training jobs, newest first")
    how_many = listing.add_mutually_exclusive_group()
    how_many.add_argument("-n", "--limit", type=count, default=20, help="how many (default: 20)")
    how_many.add_argument(
        "-a", "--all", dest="limit", action="store_const", const=EVERY_JOB, help="all there are"
    )
    listing.add_argument("--status", choices=STATUSES, help="only jobs with this status (default: any)")
    form = listing.add_mutually_exclusive_group()
    form.add_argument("-q", "--quiet", action="store_true", help="names only, one a line")
    form.add_argument(
        "--json",
        action="store_true",
        help="print JSON: AWS's summaries, for failed jobs with FailureReason",
    )
    add_place(listing)
    listing.set_defaults(func=_ps)


def _ps(arguments: argparse.Namespace) -> None:
    session = session_of(arguments)
    summaries = session.service.list_jobs(arguments.limit, arguments.status)
    if arguments.quiet:
        for summary in summaries:
            print(summary["TrainingJobName"])
        return
    for summary in summaries:
        # A summary has neither FailureReason nor Environment. On AWS no job is rehearsed in short.
        has_failed = summary["TrainingJobStatus"] == "Failed"
        if has_failed or (session.local and not arguments.json):
            with suppress(JobNotFound):  # deleted just now
                description = session.service.describe_job(summary["TrainingJobName"])
                if has_failed:
                    summary["FailureReason"] = description.get("FailureReason", "")
                if not arguments.json:
                    summary["Environment"] = description.get("Environment", {})
    if arguments.json:
        output.show_json(summaries)
    elif summaries:
        output.show_table([("NAME", "STATUS", "CREATED", "TOOK", "REASON"), *map(_row, summaries)])
    else:
        print(f"No training jobs{f' are {arguments.status}' if arguments.status else ''}.", file=sys.stderr)


def _row(summary: Mapping[str, Any]) -> tuple[str, ...]:
    created: datetime = summary["CreationTime"]
    over = summary["TrainingJobStatus"] in TERMINAL
    last = summary.get("TrainingEndTime") or summary.get("LastModifiedTime") if over else None
    ended: datetime = last or datetime.now(timezone.utc)
    status = output.Status.of(summary)
    if REHEARSE_VARIABLE in summary.get("Environment", {}):
        status = output.Status(f"{status}, short rehearsal")
    return (
        str(summary["TrainingJobName"]),
        status,
        local_time(created),
        output.duration((ended - created).total_seconds()),
        one_line(in_short(summary.get("FailureReason", "")), _REASON_WIDTH),
    )
