"""Escapes control characters in text from users and scripts (names, paths, output) for logs, terminals and XML."""

from __future__ import annotations

import re

# C0 and C1 controls, line separators, lone surrogates, and the two that XML does not allow.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def printable(text: str, keep: str = "") -> str:
    r"""The text with control characters escaped (as ``\x1b``), except those in ``keep``."""

    def written(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

    return _CONTROL.sub(written, text)
