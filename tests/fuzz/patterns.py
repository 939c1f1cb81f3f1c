"""Texts that a regular expression matches, drawn at random: what AWS's models accept by pattern."""

from __future__ import annotations

import importlib
import re
import sys
from random import Random
from typing import Any

_parser: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_TRIES = 8
_ANY = "abcXYZ019 -_./:@é"
_CATEGORIES = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_WORD": "abcXYZ019_",
    "CATEGORY_SPACE": " \t",
    "CATEGORY_NOT_DIGIT": "ab-_ ",
    "CATEGORY_NOT_WORD": " -./",
    "CATEGORY_NOT_SPACE": "ab0-/",
}


def text(pattern: re.Pattern[str], random: Random, least: int = 0, most: int = 1 << 20) -> str | None:
    """A text of ``least`` to ``most`` characters that matches whole; None when none was found."""
    tree = _parser.parse(pattern.pattern, pattern.flags)
    for attempt in range(_TRIES):
        more = min(least, 2000) if attempt % 2 else 6
        drawn = "".join(_sequence(tree, random, more))[: most + 1]
        if least <= len(drawn) <= most and pattern.fullmatch(drawn):
            return drawn
    return None


def _sequence(tree: Any, random: Random, more: int) -> list[str]:
    return [part for operator, argument in tree for part in _drawn(str(operator), argument, random, more)]


def _drawn(operator: str, argument: Any, random: Random, more: int) -> list[str]:
    if operator == "LITERAL":
        return [chr(argument)]
    if operator == "NOT_LITERAL":
        return [random.choice([c for c in _ANY if ord(c) != argument])]
    if operator == "ANY":
        return [random.choice(_ANY)]
    if operator == "IN":
        return [_member(argument, random)]
    if operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        low, high, inner = argument
        count = random.randint(low, min(int(high), low + more))
        return [part for _ in range(count) for part in _sequence(inner, random, min(more, 6))]
    if operator == "SUBPATTERN":
        return _sequence(argument[-1], random, more)
    if operator == "BRANCH":
        return _sequence(random.choice(argument[1]), random, more)
    return []  # anchors and assertions: the final match decides


def _member(items: Any, random: Random) -> str:
    """One character of a class."""
    if str(items[0][0]) == "NEGATE":
        outside = [c for c in _ANY if not any(_holds(str(o), a, c) for o, a in items[1:])]
        return random.choice(outside or ["\u00ff"])
    operator, argument = random.choice(items)
    if str(operator) == "RANGE":
        return chr(random.randint(argument[0], min(argument[1], argument[0] + 200)))
    if str(operator) == "CATEGORY":
        return random.choice(_CATEGORIES.get(str(argument), "a"))
    return chr(argument)


def _holds(operator: str, argument: Any, character: str) -> bool:
    if operator == "RANGE":
        return bool(argument[0] <= ord(character) <= argument[1])
    if operator == "CATEGORY":
        return character in _CATEGORIES.get(str(argument), "")
    return bool(ord(character) == argument)
