"""Output of commands: a report in the form asked for, a table, JSON, an error message."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import ConfigurationError, JobNotFound, WindtunnelError
from windtunnel.priceperf.money.billing import billable_seconds
from windtunnel.rendering.format import lines

if TYPE_CHECKING:
    from windtunnel.rendering.report import Report

_STDOUT = "-"
"""A file's name that means stdout, as with other commands."""
MODELLED = "Modelled figures have an interval; costs have their price and its date."
"""What the help of a command that gives such figures ends with."""
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
        """A job's status, with the secondary one if it differs: ``InProgress (Uploading)``; in the queue: Pending."""
        status, secondary = description["TrainingJobStatus"], description.get("SecondaryStatus")
        if secondary == "Pending":
            return cls(secondary)
        return cls(f"{status} ({secondary})" if secondary not in (None, "", status) else status)

    @property
    def colour(self) -> str:
        """The status's colour, as rich names it."""
        return _COLOURS.get(self.partition(" ")[0].rstrip(","), "cyan")


def add_arguments(parser: Any, *, charts: bool = True, full: bool = False) -> None:
    """Add ``--json``, ``--html``, ``--markdown``; ``--png`` with ``charts``, ``--full`` with ``full``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write one HTML file with its charts inside, which loads nothing; - is stdout",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write Markdown, for a pull request or a build's summary; - is stdout",
    )
    if full:
        parser.add_argument("--full", action="store_true", help="print all of it, not only the answer")
    if charts:
        parser.add_argument(
            "--png", type=Path, metavar="FILE", help="write the charts (needs the extra `plot`)"
        )


def show(report: Report, args: argparse.Namespace) -> int:
    """Write the files that were asked for, ``-`` to stdout; print the report as JSON, or as text if no file was asked
    for.

    Returns the exit code, 0.

    Raises:
        ConfigurationError: a file cannot be written, there is no chart to write, or stdout is to get two things.
    """
    full = getattr(args, "full", False)
    printed = [name for name in ("html", "markdown", "png") if str(getattr(args, name, None)) == _STDOUT]
    if "png" in printed:
        raise ConfigurationError("--png writes a picture to a file: --png charts.png")
    if len(printed) + bool(args.json) > 1:
        raise ConfigurationError(f"one form goes to stdout: with --{printed[0]} -, name files for the others")
    files: list[tuple[Path | None, Callable[[Path | None], object]]] = [
        (args.html, report.to_html),
        (args.markdown, lambda path: report.to_markdown(path, full=full)),
        (getattr(args, "png", None), lambda path: report.to_png(path or "")),
    ]
    for path, write in files:
        if path is None:
            continue
        if str(path) == _STDOUT:
            print(str(write(None)).rstrip("\n"))
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
    """Print with rich, as wide as the terminal; into a file or a pipe at least as wide as `TEXT_WIDTH`."""
    from rich.console import Console

    from windtunnel.rendering.report import TEXT_WIDTH

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, TEXT_WIDTH)  # rich would take 80, or COLUMNS
    console.print(*parts, sep="\n")


def show_json(document: object) -> None:
    """Print AWS's answer as JSON, in the form of the AWS CLI, with times in ISO 8601."""
    print(json.dumps(document, indent=4, default=_as_text))


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def show_table(rows: Iterable[Sequence[str]], *, whole: bool = False) -> None:
    """Print aligned columns. ``whole``: show all of them and full lines.

    Otherwise columns that are empty below their heading are left out, and a terminal's edge cuts the lines. On a
    terminal a `Status` is coloured (not with NO_COLOR, which rich respects).
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
    """A duration as ``1:02:03``, rounded to seconds as on the bill, so that a job never seems shorter than billed."""
    minutes, rest = divmod(billable_seconds(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


def of_each(names: Iterable[str], done: Callable[[str], str]) -> int:
    """Call ``done`` for each name once, and print its result. After an error, print that and go on with the others.

    Returns the exit code: 1 if there was an error.
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
    """Print an error message on stderr. Who names a model in a job's place is told what takes one."""
    hint = ""
    if isinstance(error, JobNotFound):
        from windtunnel.priceperf.model.architectures import architecture
        from windtunnel.priceperf.model.hub_models import hub_config

        if architecture(error.name) is not None or hub_config(error.name) is not None:
            hint = f" It is a model: windtunnel compare --architecture {error.name} --samples N"
    print(f"windtunnel: {lines(str(error))}{hint}", file=sys.stderr)
