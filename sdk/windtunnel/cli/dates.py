"""Days on the command line."""

from __future__ import annotations

import argparse
from datetime import date


def day(text: str) -> date:
    """An argument's day, as argparse wants it.

    Raises:
        ArgumentTypeError: not a day written YYYY-MM-DD.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2023-01-31") from None
