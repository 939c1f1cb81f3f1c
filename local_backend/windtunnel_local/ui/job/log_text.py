r"""Lines of a log as text that can only be read: whatever a script prints, nothing of it acts.

    10 MB of text        cut, with its whole length said
    "\x1b[31mred"        without a terminal's orders: "red"
    "10 %\r20 %"         what a terminal shows in the end: "20 %"
    "\x07", U+202E       written out: marks that no one sees, or that reorder what everyone sees

Escaping is left to who writes it into a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from windtunnel_local.ui.text import visible

SHOWN_CHARACTERS = 2000
_READ_CHARACTERS = 2 * SHOWN_CHARACTERS
"""More than are shown, for a terminal's orders among them; and few, for an order that never ends is looked for."""

_TERMINAL = re.compile(
    "\x1b(?:"
    "\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\|$)"  # OSC, DCS, ...: titles, links
    "|[ -/]*[0-~]"  # the short ones
    ")|\x9b[0-?]*[ -/]*[@-~]"
)


@dataclass(frozen=True)
class Shown:
    """A line to be shown. ``length``: characters of the whole line, where ``text`` is only its beginning; else 0."""

    text: str
    length: int


def shown(line: str, most: int = SHOWN_CHARACTERS) -> Shown:
    """The line, harmless and of ``most`` characters at most."""
    last = line.rstrip("\r\n").rpartition("\r")[2]
    begin = last[:_READ_CHARACTERS]
    if not begin.isprintable():
        begin = visible(_TERMINAL.sub("", begin), None).replace("\n", "\\n")
    cut = len(begin) > most or len(last) > _READ_CHARACTERS
    return Shown(begin[:most], len(line) if cut else 0)
