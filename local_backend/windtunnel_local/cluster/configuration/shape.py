"""Check a document against the table of keys: unknown and missing keys, types, ranges, choices.

`sound` returns the part with valid values, in which `rules` can then look for more mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from .document import Entry, Scalar
from .findings import Findings
from .key import Key

_TRUE = ("true", "yes", "on", "1", "t", "y")
_FALSE = ("false", "no", "off", "0", "f", "n")
_NOUNS = {
    "text": "a text", "any": "one value", "whole": "a whole number", "number": "a number", "flag": "true or false",
    "section": "keys with values", "list": "a list", "settings": "names with values",
}  # fmt: skip


def sound(entry: Entry, key: Key, path: str, findings: Findings) -> Entry | None:
    """The valid part of an entry; None if the entry itself is wrong. Adds each mistake to ``findings``."""
    if entry.value is None:
        findings.error(entry.line, path, f"has no value. Give it {_NOUNS[key.kind]}, or remove the key.")
        return None
    if key.kind == "section":
        return _section(entry, key, path, findings)
    if key.kind == "list":
        return _list(entry, key, path, findings)
    if key.kind == "settings":
        return _settings(entry, path, findings)
    return _scalar(entry, key, path, findings)


def _section(entry: Entry, key: Key, path: str, findings: Findings) -> Entry | None:
    if not isinstance(entry.value, dict):
        _wrong_kind(entry, key, path, findings)
        return None
    kept: dict[str, Entry] = {}
    for name, value in entry.value.items():
        known = key.keys.get(name)
        below = f"{path}/{name}" if path else name
        if known is None:
            findings.error(value.line, below, f"unknown key.{_meant(name, key.keys)}")
        elif (kept_value := sound(value, known, below, findings)) is not None:
            kept[name] = kept_value
    for name, known in key.keys.items():
        if known.required and name not in entry.value:
            findings.error(entry.line, path, f"{name} is missing: it must be given.")
    return Entry(kept, entry.line)


def _list(entry: Entry, key: Key, path: str, findings: Findings) -> Entry | None:
    if not isinstance(entry.value, list) or key.of is None:
        _wrong_kind(entry, key, path, findings)
        return None
    if key.required and not entry.value:
        findings.error(entry.line, path, "is empty: at least one member must be given.")
    members = (sound(value, key.of, f"{path}/{place}", findings) for place, value in enumerate(entry.value))
    return Entry([member for member in members if member is not None], entry.line)


def _settings(entry: Entry, path: str, findings: Findings) -> Entry | None:
    """Check names and values that other software defines, in any depth."""
    if isinstance(entry.value, (dict, list)):
        return entry
    _wrong_kind(entry, Key("settings"), path, findings)
    return None


def _scalar(entry: Entry, key: Key, path: str, findings: Findings) -> Entry | None:
    value = _coerced(entry.value, key.kind) if not isinstance(entry.value, (dict, list)) else None
    if value is None:
        _wrong_kind(entry, key, path, findings)
        return None
    if key.choices and value not in key.choices:
        findings.error(entry.line, path, f"{value!r} is not valid.{_meant(str(value), key.choices)}")
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not _within(value, key):
        findings.error(entry.line, path, f"{value} is not valid: it must be {_range(key)}.")
        return None
    if key.pattern and not re.fullmatch(key.pattern, str(value)):
        if key.effect:
            findings.error(entry.line, path, f"{value!r} is not valid: it must match {key.pattern}.")
            return None
        findings.warning(
            entry.line,
            path,
            f"{value!r} changes nothing here; on AWS it must match {key.pattern}.",
            "ConfigSchemaValidator",
        )
    return Entry(value, entry.line)


def _coerced(value: Scalar, kind: str) -> Scalar:
    """The value as ParallelCluster (marshmallow) reads it: a text that looks like a number is one. None: wrong type."""
    if kind == "any":
        return value
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "flag":
        word = str(value).lower()
        return True if word in _TRUE else False if word in _FALSE else None
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
        if kind == "number":
            return number if abs(number) != float("inf") and number == number else None
        return int(value) if int(value) == number else None
    except (ValueError, OverflowError):
        return None


def _within(value: float, key: Key) -> bool:
    return (key.least is None or value >= key.least) and (key.most is None or value <= key.most)


def _range(key: Key) -> str:
    words = [
        f"at least {key.least:g}" if key.least is not None else "",
        f"at most {key.most:g}" if key.most is not None else "",
    ]
    return " and ".join(word for word in words if word)


def _wrong_kind(entry: Entry, key: Key, path: str, findings: Findings) -> None:
    if isinstance(entry.value, dict):
        given = "keys with values"
    elif isinstance(entry.value, list):
        given = "a list"
    else:
        given = repr(entry.value)
    quotes = " Quote it to make it a text." if key.kind == "text" and given == repr(entry.value) else ""
    findings.error(entry.line, path, f"is {given}; it must be {_NOUNS[key.kind]}.{quotes}")


def _meant(given: str, valid: Iterable[str]) -> str:
    names = list(valid)
    by_case = {name.lower(): name for name in names}
    close = get_close_matches(given.lower(), list(by_case), n=2, cutoff=0.6)
    if close:
        return f" Did you mean {' or '.join(by_case[name] for name in close)}?"
    return f" Valid here: {', '.join(names)}."
