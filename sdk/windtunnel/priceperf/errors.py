"""Errors of the price/performance model.

PricePerfError
├── UnknownInstance      no such instance type in the catalog
├── NotCalibrated        an instance type that has no calibration
├── PriceUnknown         the price book has no price for that instance at that date
├── InvalidCounters      counters.json breaks its schema, or cannot be modelled
│   └── NothingTrained   no training step was counted
└── InvalidInput         an argument is out of its range
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

_LIKE = 0.75
"""Words this much alike (by difflib) differ by a letter or two."""


class PricePerfError(ValueError):
    """Root of all errors of `windtunnel.priceperf`."""


class UnknownInstance(PricePerfError):
    """The catalog does not list the instance type."""


class NotCalibrated(PricePerfError):
    """No calibration models the instance type: the model was fitted to no published row of its chip."""


class PriceUnknown(PricePerfError):
    """No price of that instance is in force at that date."""


class InvalidCounters(PricePerfError):
    """The counters do not follow the schema ``windtunnel.counters/1``, or cannot be modelled."""


class NothingTrained(InvalidCounters):
    """The counters hold no training step: the script made none, or the job ended before its first one."""


class InvalidInput(PricePerfError):
    """An argument is out of its range."""


def quoted(value: object) -> str:
    """The ``repr`` of a value for an error message, cut to 40 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an int of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}... ({len(text)} characters)"


def did_you_mean(given: str, valid: Iterable[str]) -> str:
    """The hint `` Did you mean 'x'?`` with the nearest valid names, three at most; empty if none is near."""
    near = [name for name in dict.fromkeys(valid) if _is_near(_words(given), _words(name))]
    near.sort(key=lambda name: _likeness(given.casefold(), name.casefold()), reverse=True)
    return f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.casefold())


def _is_near(given: Sequence[str], name: Sequence[str]) -> bool:
    """Whether all words of two names are alike and at most one number differs: trn3 may be trn2, m5 is not p5."""
    if len(given) != len(name):
        one, other = "".join(given), "".join(name)
        return _begins(one, other) or (_likeness(one, other) >= _LIKE and not _other_number(one, other))
    return all(map(_alike, given, name)) and sum(map(_other_number, given, name)) <= 1


def _alike(one: str, other: str) -> bool:
    same_letters = re.sub(r"\d", "", one) == re.sub(r"\d", "", other)
    return same_letters or _begins(one, other) or _likeness(one, other) >= _LIKE


def _begins(one: str, other: str) -> bool:
    """Whether the shorter of two words, if it says enough, is the beginning of the longer."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and (len(short) > 2 or short.isdigit())


def _other_number(one: str, other: str) -> bool:
    """Whether two words have other digits, in whatever order."""
    return sorted(filter(str.isdigit, one)) != sorted(filter(str.isdigit, other))


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
