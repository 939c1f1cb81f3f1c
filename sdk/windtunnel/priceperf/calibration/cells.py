"""Read a cell of a table as a number, with thousands separators and the suffixes k, M, B, G and T."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from ..errors import InvalidInput

UNKNOWN = ("", "unknown", "none given", "n/a", "na", "nan", "null", "-", "?")
"""Texts of a cell without a value."""
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d*)?[a-z]?")
_LARGEST = 1e15
"""Upper limit, beyond any batch, length or model; its inverse is the lower limit. They prevent overflows later."""
_PREFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


def integer(cells: Mapping[str, str], column: str, default: int | None, least: int = 1) -> int:
    """The whole number in a column; ``default`` if the cell is empty (None: required). Raises `InvalidInput`."""
    value = number(cells, column)
    if value is None:
        if default is None:
            raise InvalidInput(f"{column} is missing")
        return default
    if value != int(value):
        raise InvalidInput(f"{column} must be a whole number, not {cells[column]}")
    if value < least:
        raise InvalidInput(f"{column} must be {least} or more, not {value:g}")
    return int(value)


def says(cells: Mapping[str, str], column: str, value: float) -> bool:
    """Whether the cell holds that value, or none."""
    try:
        return number(cells, column) in (None, value)
    except InvalidInput:
        return False


def number(cells: Mapping[str, str], column: str) -> float | None:
    """The number in a column; None: the cell has no value. Raises `InvalidInput` if it is no number."""
    text = cells.get(column, "").replace("_", "").lower()
    if text in UNKNOWN:
        return None
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    factor = 1.0
    if text[-1] in _PREFIXES:
        text, factor = text[:-1], _PREFIXES[text[-1]]
    try:
        value = float(text) * factor
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{column} must be a number, as 1234.5 or 1,234.5, not {cells[column]!r}")
    if value > _LARGEST or 0 < value < 1 / _LARGEST:
        raise InvalidInput(f"{column} must be at most {_LARGEST:g} and at least its inverse, not {value:g}")
    return value
