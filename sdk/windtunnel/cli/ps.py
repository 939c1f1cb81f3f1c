"""``windtunnel ps``: the training jobs there are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from windtunnel.cli.options import add_place, session_of
from windtunnel.session.training_service import TERMINAL


def add_parser(commands: Any) -> None:
    """Register the command."""
    listing = commands.add_parser("ps", help="list training jobs, newest first")
    listing.add_argument("-n", "--limit", type=_positive, default=20, help="how many (default: 20)")
    add_place(listing)
    listing.set_defaults(func=_ps)


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
    """The status, or Pending while the job waits for its turn."""
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


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1 is needed")
    return number
