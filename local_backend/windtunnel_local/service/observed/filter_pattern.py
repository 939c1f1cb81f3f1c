"""CloudWatch's filter patterns; only unstructured ones (terms) are supported."""

from __future__ import annotations

import re
from collections.abc import Callable

from windtunnel_local.service.ground.errors import InvalidParameter

Matches = Callable[[str], bool]

_TERM = re.compile(r'\s*(?P<mark>[?-]?)(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>\w+))(?=\s|$)')
_VALID = (
    'Valid: terms that must all occur (ERROR timeout), "a quoted phrase", ?one ?of ?these, -without.'
    " Patterns in {...}, [...] or %...% are not supported here; read all events and filter them yourself"
)


def compile_pattern(pattern: str | None) -> Matches:
    """The function that tells whether a message matches: case-sensitive terms, as in CloudWatch's patterns.

    Raises:
        InvalidParameter: the pattern is not supported; the message says what is valid.
    """
    required, optional, excluded = _terms(pattern or "")
    if optional and required:
        # CloudWatch would ignore the optional terms, which hardly any user wants.
        raise InvalidParameter(f"Invalid filter pattern: ?terms do not mix with others. {_VALID}.")

    def matches(message: str) -> bool:
        return (
            all(term in message for term in required)
            and not any(term in message for term in excluded)
            and (not optional or any(term in message for term in optional))
        )

    return matches


def _terms(pattern: str) -> tuple[list[str], list[str], list[str]]:
    """The required, optional and excluded terms of a pattern."""
    found: dict[str, list[str]] = {"": [], "?": [], "-": []}
    position, text = 0, pattern.rstrip()
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise InvalidParameter(
                f"Invalid filter pattern: {pattern!r} cannot be read from"
                f" {text[position:].strip()!r} on. {_VALID};"
                " put terms with other characters than letters, digits and _ in quotes."
            )
        quoted = term["quoted"]
        found[term["mark"]].append(term["word"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        position = term.end()
    return found[""], found["?"], found["-"]
