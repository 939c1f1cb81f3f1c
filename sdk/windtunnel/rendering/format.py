"""Numbers as text for people: always with a unit, thousands separated, no more digits than are known."""

from __future__ import annotations

import math
import re
import textwrap
from datetime import datetime

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
MODELLED_DIGITS = 2
"""Significant digits of a modelled figure, whose error is ten percent or more."""

_ROUNDED_TO_1_S = 0.995
"""Seconds from which a time is 1.0 s with two significant digits, no longer 990 ms."""
HOURS_FROM_S = 10_000
YEARS_FROM_S = 3.6e7
"""Seconds (10,000 h) from which times are shown in years."""
_YEAR_S = 365.25 * 86_400
_FAR_SHORTER = 100
WORDS_FROM = 1e7
_WORDS = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
_SIGNS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SHORT_REST = 0.4
NOTE_WIDTH = 94
"""Width of a note, or of a headline's line, in a terminal of 100 columns."""


def rounded(value: float, digits: int = MODELLED_DIGITS) -> float:
    """The number with that many significant digits, as a number."""
    return round(value, digits - 1 - math.floor(math.log10(abs(value)))) if value else value


def significant(value: float, digits: int = MODELLED_DIGITS) -> str:
    """The number with that many significant digits: 5123.4 -> '5,100', 0.0123 -> '0.012', 1.23e7 -> '12 million'."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "unbounded"
    near = rounded(value, digits)
    size, word = _of_units(near, _WORDS) if abs(near) >= WORDS_FROM else (1.0, "")
    near /= size
    return f"{near:,.{max(0, digits - 1 - math.floor(math.log10(abs(near))))}f}{word}"


def in_words(value: float) -> str:
    """A large number in words: 15e9 -> '15 billion', 1.234e9 -> '1.23 billion', 512 -> '512'."""
    near = rounded(value, 3)
    size, word = _of_units(near, _WORDS)
    return f"{given(float(f'{near / size:.3g}'))}{word}" if word else f"{value:,.0f}"


def short(value: float) -> str:
    """Two significant digits, from 1,000 on in thousands, then in millions and more: '990', '1.2k', '4.6M'."""
    size, sign = short_unit(value)
    return f"{significant(value / size)}{sign}"


def short_unit(value: float) -> tuple[float, str]:
    """The unit of `short` for a value: its size and its letter."""
    return _of_units(rounded(value), _SIGNS)


def _of_units(value: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    return next((unit for unit in units if abs(value) >= unit[0]), (1.0, ""))


def modelled_seconds(value: float, like: float | None = None) -> str:
    """A modelled time: '0 s', '0.83 ms', '101 ms' as '100 ms', '5,100 s', from 10,000 s on '5.0 h', from 10,000 h on
    '1.2 years'.

    ``like``: seconds that choose the unit instead of the value: both ends of an interval have the unit of its middle.
    """
    if value == 0:
        return "0 s"
    of_unit = like or value
    if of_unit >= YEARS_FROM_S:
        return f"{significant(value / _YEAR_S)} years"
    if of_unit >= HOURS_FROM_S:
        return f"{significant(value / 3600)} h"
    return f"{significant(value * 1e3)} ms" if of_unit < _ROUNDED_TO_1_S else f"{significant(value)} s"


def seconds(value: float) -> str:
    """A measured time: '83 ms', '4.2 s', '1,234 s'."""
    if value < 1:
        return f"{significant(value * 1e3, 3)} ms" if value else "0 s"
    return f"{value:,.1f} s" if value < 100 else f"{value:,.0f} s"


def dollars(value: float) -> str:
    """A modelled amount with two significant digits: '$41', '$0.034', '$1,200', '$12 million'."""
    return f"${significant(value)}"


def price(value: float) -> str:
    """A price with all its digits, as AWS lists it: '$24.725', '$25.251286'."""
    text = f"{value:.6f}".rstrip("0")
    whole, _, part = text.partition(".")
    return f"${int(whole):,}.{part.ljust(2, '0')}"


def cents(value: float) -> str:
    """A price in a sentence, rounded to cents: 25.251286 -> '$25.25'; one below ten cents as `price`."""
    return f"${value:,.2f}" if value >= 0.1 else price(value)


def interval(low: str, high: str) -> str:
    """'4,100 to 7,600 s' from the two ends; a shared unit or dollar sign is kept once each."""
    low_number, _, low_unit = low.partition(" ")
    _, _, high_unit = high.partition(" ")
    return f"{low_number} to {high}" if low_unit == high_unit else f"{low} to {high}"


def modelled_span(ends: tuple[float, float], middle: float) -> str:
    """Both ends of a modelled time in the unit of its middle: '3,400 to 13,000 s'."""
    return interval(modelled_seconds(ends[0], middle), modelled_seconds(ends[1], middle))


def seconds_within(value: float, ends: tuple[float, float], longest: float = 0.0) -> str:
    """A modelled time with its interval: '3,400 s (2,500 to 5,100 s)'.

    ``longest``: the longest of those beside it, whose unit it has too, unless it is far shorter.
    """
    like = longest if value * _FAR_SHORTER >= longest else value
    return f"{modelled_seconds(value, like)} ({modelled_span(ends, like)})"


def dollar_span(low: float, high: float) -> str:
    """Both ends of a modelled amount: '$23 to $86'."""
    return interval(dollars(low), dollars(high))


def dollars_within(value: float, low: float, high: float) -> str:
    """A modelled amount with its interval: '$41 ($23 to $86)'."""
    return f"{dollars(value)} ({dollar_span(low, high)})"


def percent(share: float) -> str:
    """A share as whole percent: 0.347 -> '35 %'."""
    return "under 1 %" if 0 < share < 0.005 else f"{round(share * 100):,} %"


def difference(saving: float) -> str:
    """A saving in words: 0.347 -> '35 % less', -0.2 -> '20 % more', -2.5 -> '3.5 times as much'."""
    if saving < -1:
        return f"{significant(1 - saving)} times as much"
    return f"{percent(abs(saving))} {'less' if saving >= 0 else 'more'}"


def signed_percent(share: float) -> str:
    """A saving: 0.347 -> '+35 %', -0.2 -> '-20 %'; '<-999 %' below that, where the exact number does not matter."""
    return "<-999 %" if share < -9.99 else f"{round(share * 100):+,} %"


def shortened(text: str, lines: int, width: int = NOTE_WIDTH) -> str:
    """The text, cut to ``lines`` lines of ``width`` columns if it is longer. A short rest of a sentence or clause that
    the cut leaves goes too: half of one says little, and "Not ..." alone could be read as the opposite.
    """
    cut = " ".join(textwrap.wrap(text, width, max_lines=lines, placeholder=" ...", break_on_hyphens=False))
    *whole, rest = re.split(r"(?<=[.;]) ", cut.removesuffix(" ..."))
    short = whole and cut != text and len(rest) < _SHORT_REST * len(cut)
    return " ".join((*whole, "...")) if short else cut


def lines_of(text: str) -> int:
    """The number of lines that the text takes as a note."""
    return len(textwrap.wrap(text, NOTE_WIDTH, break_on_hyphens=False))


def quantity(value: float, unit: str) -> str:
    """A count with a metric prefix: (4.4e8, 'B') -> '440 MB'; three significant digits. With no unit: '21'."""
    size, prefix = _of_units(value, _PREFIXES)
    return f"{significant(value / size, 3)} {prefix}{unit}" if prefix else f"{value:,.0f} {unit}".rstrip()


def local_time(when: datetime) -> str:
    """A time in this machine's time zone."""
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def gibibytes(value: float) -> str:
    """Bytes as GiB (or MiB below a tenth of one): three significant digits."""
    gib = value / 2**30
    return f"{significant(gib, 3)} GiB" if gib >= 0.1 else f"{significant(value / 2**20, 3)} MiB"


def plain(value: float) -> str:
    """A count or a batch: '256', '2.5'."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def given(value: float) -> str:
    """A number as a user gave it or a log held it, large ones without an exponent: '0.5', '2,693', '2,000,000'."""
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e18 else f"{value:,g}"


def many(number: float, noun: str) -> str:
    """``1 sample``, ``3,600,000 samples``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def name(text: object) -> str:
    r"""A name from a file as one line of text: control characters and lone surrogates are written as ``\x1b``."""
    return _UNPRINTABLE.sub(_written_out, str(text))


def lines(text: str) -> str:
    r"""Text from a file or an endpoint: as `name`, but tabs and line ends stay."""
    return _UNPRINTABLE.sub(lambda match: match[0] if match[0] in "\t\n" else _written_out(match), text)


def one_line(text: object, longest: int | None = None) -> str:
    """Any text as one line of at most ``longest`` characters; line breaks become spaces."""
    line = name(" ".join(str(text).split()))
    return (
        line if longest is None or len(line) <= longest else f"{line[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
    )


def _written_out(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()
