r"""Lines of a log as harmless text: no control character or escape sequence of a script has an effect.

    10 MB of text        cut; its whole length is kept as a number
    "\x1b[31mred"        escape sequences of terminals are removed: "red"
    "10 %\r20 %"         what a terminal shows in the end: "20 %"
    "\x07", U+202E       written out: characters that are invisible, or reorder the text around them

The caller escapes the text for HTML.
"""

from __future__ import annotations

import re

from windtunnel_local.ui.text import visible

SHOWN_CHARACTERS = 2000
_READ_CHARACTERS = 2 * SHOWN_CHARACTERS
"""More than are shown, as some are escape sequences; but few, as the end of an open sequence is searched for."""

_TERMINAL = re.compile(
    "\x1b(?:"
    "\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\|$)"  # OSC, DCS, ...: titles, links
    "|[ -/]*[0-~]"  # two-character sequences
    ")|\x9b[0-?]*[ -/]*[@-~]"
)


def shown(line: str) -> tuple[str, int]:
    """The line as harmless text; and if that is only its beginning, the characters of the whole line, else 0."""
    last = line.rstrip("\r\n").rpartition("\r")[2]
    begin = last[:_READ_CHARACTERS]
    if not begin.isprintable():
        begin = visible(_TERMINAL.sub("", begin), None).replace("\n", "\\n")
    cut = len(begin) > SHOWN_CHARACTERS or len(last) > _READ_CHARACTERS
    return begin[:SHOWN_CHARACTERS], len(line) if cut else 0
