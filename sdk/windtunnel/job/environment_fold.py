"""Show one line in place of the hundred and more with which AWS's toolkit prints its environment before a script.

The toolkit writes them as one message, so no line of a script is among them. The message is recognised by its first
and last line and by the form of what lies between; anything of another form is shown unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_BEFORE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ sagemaker-training-toolkit INFO +Invoking user script")
_FIRST = ["Training Env:", "{"]
_BETWEEN = "Environment variables:"
_VARIABLE = re.compile(r"[A-Z][^=\s]*=.*")
_BEHIND = "Invoking script with the following command:"
_MOST_LINES = 5_000


class EnvironmentFold:
    """Folds the first environment message of one log stream. Feed it the stream's lines in order."""

    def __init__(self, how_to_see_all: str) -> None:
        """``how_to_see_all``: text of the line that replaces the message."""
        self._how = how_to_see_all
        self._held: list[str] | None = None
        self._over = False

    def feed(self, line: str) -> Sequence[str]:
        """The lines to show now: this line, none while it may belong to the message, or all that were held back."""
        if self._held is None:
            if not self._over and _BEFORE.fullmatch(line):
                self._over, self._held = True, []
            return (line,)
        self._held.append(line)
        if line == _BEHIND:
            held = self.rest()
            return (
                (f"[{len(held) - 1} lines folded: {self._how}]", line) if _is_environment(held[:-1]) else held
            )
        begun = [text for text in self._held[:5] if text.strip()][:2]
        return () if begun == _FIRST[: len(begun)] and len(self._held) < _MOST_LINES else self.rest()

    def rest(self) -> Sequence[str]:
        """The lines that are still held back, for a log that ended within the message."""
        held, self._held = self._held or (), None
        return held


def _is_environment(lines: Sequence[str]) -> bool:
    """Whether the lines are the toolkit's environment: a JSON object, then the variables that it sets."""
    texts = [
        line for line in lines if line.strip()
    ]  # empty lines hold a blank here, and are missing in AWS's CloudWatch
    if _BETWEEN not in texts:
        return False
    place = texts.index(_BETWEEN)
    try:
        environment = json.loads("\n".join(texts[1:place]))
    except (ValueError, RecursionError):  # nested a thousand deep, which the toolkit never is
        return False
    return isinstance(environment, dict) and all(map(_VARIABLE.fullmatch, texts[place + 1 :]))
