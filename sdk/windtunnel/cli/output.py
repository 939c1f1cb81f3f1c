"""What a command shows: a report in the form asked for, a message of what went wrong."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import ConfigurationError

if TYPE_CHECKING:
    from windtunnel.rendering.report import Report

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def add_arguments(parser: Any, *, charts: bool = True) -> None:
    """``--json``, ``--html`` and, for reports with charts, ``--png``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write one HTML file that loads nothing, charts inside"
    )
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
    files: list[tuple[Path | None, Callable[[Path], object]]] = [
        (args.html, report.to_html),
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
        from rich.console import Console

        Console(highlight=False).print(report)
    return 0


def printable(text: str) -> str:
    r"""The text with control characters written out as ``\x1b``, but for tabs and ends of lines."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def complain(error: object) -> None:
    """Say on stderr what went wrong."""
    print(f"windtunnel: {printable(str(error))}", file=sys.stderr)
