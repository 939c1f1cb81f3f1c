"""Read the data files in this folder."""

from __future__ import annotations

import csv
from importlib.resources import files


def text_of(name: str) -> str:
    """The text of a file."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def table(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file as dicts by column. ``name``: without ``.csv``."""
    return list(csv.DictReader(text_of(f"{name}.csv").splitlines()))
