"""``windtunnel download``: download a job's output into a directory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from windtunnel.cli.options import add_place, job_of


def add_parser(commands: Any) -> None:
    """Register the command."""
    download = commands.add_parser(
        "download",
        help="fetch a job's model.tar.gz and output.tar.gz",
        description=(
            "Fetch a job's stored output: model.tar.gz and output.tar.gz, or its files if it is "
            "not compressed."
        ),
    )
    download.add_argument("name", help="the job's name")
    download.add_argument(
        "directory", metavar="DIR", nargs="?", type=Path, help="default: a folder with the job's name"
    )
    download.add_argument(
        "-x", "--extract", action="store_true", help="unpack the archives, into DIR/model and DIR/output"
    )
    download.add_argument("--overwrite", action="store_true", help="replace files that exist already")
    add_place(download)
    download.set_defaults(func=_download)


def _download(arguments: argparse.Namespace) -> None:
    job = job_of(arguments)
    folder = arguments.directory or Path(job.name)
    for path in job.download(folder, extract=arguments.extract, overwrite=arguments.overwrite):
        print(path)
