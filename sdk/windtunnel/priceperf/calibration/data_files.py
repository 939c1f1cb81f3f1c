"""The data files beside this module."""

from __future__ import annotations

import csv
from importlib.resources import files


def text_of(name: str) -> str:
    """A file, as it stands there."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def table(name: str) -> list[dict[str, str]]:
    """The lines of a CSV file, named without its ending, each by the names of the columns."""
    return list(csv.DictReader(text_of(f"{name}.csv").splitlines()))
