"""Messages for a terminal: what a job or a server put into them is shown, not obeyed."""

from __future__ import annotations

import re
import sys

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    r"""The text with control characters written out as ``\x1b``, but for tabs and ends of lines."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def complain(error: object) -> None:
    """Say on stderr what went wrong."""
    print(f"windtunnel: {printable(str(error))}", file=sys.stderr)
