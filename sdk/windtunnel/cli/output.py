"""What a command shows: a report in the form asked for, a table, JSON, a message of what went wrong."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import ConfigurationError, WindtunnelError
from windtunnel.priceperf.money.billing import billable_seconds
from windtunnel.rendering.format import lines

if TYPE_CHECKING:
    from windtunnel.rendering.report import Report

_COLOURS = {
    "Completed": "green",
    "InService": "green",
    "Failed": "red",
    "Stopped": "yellow",
    "Stopping": "yellow",
}


class Status(str):
    """A job's status as a cell of a table: coloured on a terminal."""

    __slots__ = ()

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Status:
        """``Completed``, ``InProgress (Uploading)``; Pending, while the job waits for its turn, by its own name."""
        status, secondary = description["TrainingJobStatus"], description.get("SecondaryStatus")
        if secondary == "Pending":
            return cls(secondary)
        return cls(f"{status} ({secondary})" if secondary not in (None, "", status) else status)

    @property
    def colour(self) -> str:
        """Its colour, as rich names it."""
        return _COLOURS.get(self.partition(" ")[0], "cyan")


def add_arguments(parser: Any, *, charts: bool = True, full: bool = False) -> None:
    """``--json``, ``--html``, ``--markdown``; with charts ``--png``, with a first screen ``--full``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write one HTML file with its charts inside, which loads nothing",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write Markdown, for a pull request or a build's summary",
    )
    if full:
        parser.add_argument("--full", action="store_true", help="print all of it, not only the answer")
    if charts:
        parser.add_argument(
            "--png", type=Path, metavar="FILE", help="write the charts (needs the extra `plot`)"
        )


def show(report: Report, args: argparse.Namespace) -> int:
    """Write the files that were asked for; print the report as JSON, or as text if no file was.

    Returns the exit code 0.

    Raises:
        ConfigurationError: a file cannot be written, or there is no chart to write.
    """
    full = getattr(args, "full", False)
    files: list[tuple[Path | None, Callable[[Path], object]]] = [
        (args.html, report.to_html),
        (args.markdown, lambda path: report.to_markdown(path, full=full)),
        (getattr(args, "png", None), report.to_png),
    ]
    for path, write in files:
        if path is None:
            continue
        try:
            write(path)
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {error.strerror or error}") from error
        except (ImportError, ValueError) as error:
            raise ConfigurationError(f"cannot write {path}: {error}") from error
        print(f"wrote {path}", file=sys.stderr)
    if args.json:
        print(report.to_json())
    elif all(path is None for path, _ in files):
        from windtunnel.rendering.text import renderables

        print_wide(*renderables(report.document(), full=full))
    return 0


def print_wide(*parts: Any) -> None:
    """Print what rich renders: as wide as the terminal; into a file or a pipe as wide as reports are, at least."""
    from rich.console import Console

    from windtunnel.rendering.report import TEXT_WIDTH

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, TEXT_WIDTH)  # rich would take 80, or COLUMNS
    console.print(*parts, sep="\n")


def show_json(document: object) -> None:
    """Print what AWS answered as JSON, as the AWS CLI does: times in ISO 8601."""
    print(json.dumps(document, indent=4, default=_as_text))


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def show_table(rows: Iterable[Sequence[str]], *, whole: bool = False) -> None:
    """Print aligned columns, without those that are empty below their heading.

    On a terminal a `Status` is coloured (rich leaves that with NO_COLOR) and a line ends at its edge, unless it is to
    be seen ``whole``.
    """
    header, *below = rows
    used = [column for column in range(len(header)) if whole or any(row[column] for row in below)]
    table = [[row[column] for column in used] for row in (header, *below)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    console = None
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False)
    for row in table:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if console is None:
            print(line)
            continue
        from rich.text import Text

        text, place = Text(line), 0
        for cell, width in zip(row, widths, strict=True):
            if isinstance(cell, Status):
                text.stylize(cell.colour, place, place + len(cell))
            place += width + 2
        console.print(text, soft_wrap=whole, no_wrap=True, overflow="ignore" if whole else "ellipsis")


def duration(seconds: float) -> str:
    """``1:02:03``, in whole seconds as a bill counts them: else a job would take less than it is billed for."""
    minutes, rest = divmod(billable_seconds(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def of_each(names: Iterable[str], done: Callable[[str], str]) -> int:
    """Do something to each name once, and print what ``done`` says. An error of one is said, and the others follow.

    Returns the exit code: 1 where there was one.
    """
    failed = 0
    for name in dict.fromkeys(names):
        try:
            print(done(name))
        except WindtunnelError as error:
            complain(error)
            failed = 1
    return failed


def complain(error: object) -> None:
    """Say on stderr what went wrong."""
    print(f"windtunnel: {lines(str(error))}", file=sys.stderr)
