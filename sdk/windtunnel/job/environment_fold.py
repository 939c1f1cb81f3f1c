"""One line for the hundred and more in which AWS's toolkit prints its environment before it starts a script.

They are one message, so nothing of a script can be between them. It is recognised by its first and last line and by
what is between them being what the toolkit writes there; whatever differs from that is shown as it is.
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
    """Feed it a stream's lines in order. Only a stream's first such message is folded."""

    def __init__(self, how_to_see_all: str) -> None:
        """``how_to_see_all``: what the line in its place says."""
        self._how = how_to_see_all
        self._held: list[str] | None = None
        self._over = False

    def feed(self, line: str) -> Sequence[str]:
        """What to show now: the line; nothing, while it may belong to the message; or what was held back."""
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
        """What is held back still: the log ended within the message."""
        held, self._held = self._held or (), None
        return held


def _is_environment(lines: Sequence[str]) -> bool:
    """Whether they are the toolkit's: an object in JSON, and behind it the variables that it sets."""
    texts = [
        line for line in lines if line.strip()
    ]  # empty ones are blanks here, and CloudWatch on AWS keeps none
    if _BETWEEN not in texts:
        return False
    place = texts.index(_BETWEEN)
    try:
        environment = json.loads("\n".join(texts[1:place]))
    except (ValueError, RecursionError):  # nested a thousand deep: no toolkit's
        return False
    return isinstance(environment, dict) and all(map(_VARIABLE.fullmatch, texts[place + 1 :]))
