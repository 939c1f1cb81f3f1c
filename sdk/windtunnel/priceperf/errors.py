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
from collections.abc import Iterable


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
    """The hint `` Did you mean 'x'?``; an empty string if no valid name is close to ``given``. Case is ignored."""
    names = {name.casefold(): name for name in valid}
    close = difflib.get_close_matches(given.casefold(), names, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(names[name]) for name in close)}?" if close else ""
