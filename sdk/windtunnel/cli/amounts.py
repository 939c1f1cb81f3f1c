"""Counts, money and times of a command line as people write them: ``3.6M``, ``1,024``, ``$2k``, ``2d``.

Each function is a ``type`` of argparse: for text of another form it raises ``ArgumentTypeError``, which says what is
valid.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from decimal import Decimal, DecimalException

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_MOST = 10**30
"""Largest number that is read. The arguments' own limits, which their errors name, are far below."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPELT_OUT = re.compile(r"(?<=[\d\s.])(?:sec(?:ond)?|min(?:ute)?|h(?:ou)?r|day)s?$")
"""A unit of time as a word or its short form: ``30min``, ``48 hours``, ``2 days``."""
_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?:\d(?:_?\d)*\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
"""``1_000``, ``1,000``, ``1.5``, ``1e9``: a comma may stand only between thousands."""


def whole(text: str) -> int:
    """A whole number: ``20``, ``1,024``, ``3.6M``, ``15B``, ``1e6`` or ``1_000_000``."""
    found = _number(text)
    # Compared before the conversion to int, which takes minutes for a million digits.
    if found is not None and abs(found) > _MOST:
        raise _wrong(text, "is too large: at most 1e30")
    if found is None or found != int(found):
        raise _wrong(text, "is no whole number; write it as 20, 1,024, 3.6M or 1e6")
    return int(found)


def nodes(text: str) -> int:
    """A number of instances, as `whole`; several of them are another option's."""
    try:
        return whole(text)
    except argparse.ArgumentTypeError:
        raise _wrong(
            text, "is not one whole number. For a table over 1 to 64 instances: --scaling strong"
        ) from None


def count(text: str) -> int:
    """A whole number from 1, written as for `whole`."""
    found = whole(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text!r:.80}: a whole number from 1 is needed")
    return found


def one_of_several(text: str) -> int:
    """As `count`, for an option that takes several numbers: there ``1,128`` could mean two, so a comma is refused."""
    if re.search(r",|\d\s*-", text):
        raise _wrong(text, "is not one number; write several with blanks, as 1 2 4, and none with a comma")
    return count(text)


def number(text: str) -> float:
    """Any number: ``0.5``, ``2,693``, ``2k``."""
    return _float(text, _number(text), "is no number; write it as 0.5, 2,693, 2k or 1e6, without a unit")


def dollars(text: str) -> float:
    """An amount in dollars: ``2000``, ``$2,000``, ``20k`` or ``1.5M``."""
    found = _number(text.strip().strip("$"))
    return _float(text, found, "is no number of dollars; write it as 2000, $2,000, 20k or 1.5M")


def part(text: str) -> float:
    """A part of a whole, from 0 to 1: ``30%`` or ``0.3``. ``30`` is refused: it may be meant as percent."""
    found = _number(text.strip().removesuffix("%"))
    usable = None if found is None else found / 100 if text.strip().endswith("%") else found
    wrong = usable is None or not 0 <= usable <= 1
    return _float(text, None if wrong else usable, "is no part of a whole; write it as 30% or 0.3")


def hours(text: str) -> float:
    """A time above 0, in hours: ``48h``, ``30min`` or ``2d``; a number alone is hours."""
    return _time(text, "h", "48h, 30min or 2d; a number alone is hours", above=0) / 3600


def seconds(text: str) -> float:
    """A time in seconds: ``600``, ``10m``, ``1.5h`` or ``1d``; a number alone is seconds."""
    return _time(text, "s", "600, 10m, 1.5h or 1d")


def whole_seconds(text: str) -> int:
    """As `seconds`, for a whole number of seconds."""
    found = seconds(text)
    if not found.is_integer():
        raise _wrong(text, "is no whole number of seconds; write it as 600, 10m or 2h")
    return int(found)


def length(text: str) -> int:
    """The tokens of a sequence, as `count`, but without ``k``: ``8k`` could mean 8,000 or 8,192."""
    if text.strip().lower().endswith("k"):
        raise _wrong(text, "may be thousands or times 1,024; write the number, as 8192")
    return count(text)


def _time(text: str, unit: str, valid: str, above: float = float("-inf")) -> float:
    in_short = _SPELT_OUT.sub(lambda unit: unit[0][0], text.strip().lower())
    found = _number(in_short, {"": _SECONDS[unit], **_SECONDS})
    usable = None if found is None or found <= above else found
    return _float(text, usable, f"is no time; write it as {valid}")


def _float(text: str, found: Decimal | None, why: str) -> float:
    if found is None:
        raise _wrong(text, why)
    return float(found)


def _wrong(text: str, why: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{text!r:.80} {why}")


def _number(text: str, units: Mapping[str, int] = _UNITS) -> Decimal | None:
    found = re.fullmatch(rf"({_NUMBER})\s*([{''.join(units)}]?)", text.strip().lower())
    try:
        return Decimal(found[1].replace(",", "")) * units[found[2]] if found else None
    except DecimalException:
        return None
