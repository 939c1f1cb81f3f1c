"""The filters of all templates: how values are written on a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from markupsafe import Markup

from windtunnel.rendering.format import dollars as modelled_dollars
from windtunnel.rendering.format import given
from windtunnel_local.ui.text import visible

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration(seconds: float | None) -> str:
    """``3.2 s``, ``4 min 10 s``, ``3 h 05 min``, ``2 d 4 h``; a dash for None."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def when(moment: datetime | None) -> Markup:
    """A time in UTC, to the second; the page's script writes it in the reader's own zone."""
    if moment is None:
        return Markup("–")
    utc = moment.astimezone(timezone.utc)
    text = f"{utc:%Y-%m-%d %H:%M:%S}"
    return Markup('<time datetime="{}">{} UTC</time>').format(utc.isoformat(timespec="milliseconds"), text)


def running(since: datetime | None, now: datetime) -> Markup:
    """The duration since a time; the page's script keeps counting."""
    if since is None:
        return Markup("–")
    return Markup('<span data-since="{}">{}</span>').format(
        int(since.timestamp() * 1000), duration(max(0.0, (now - since).total_seconds()))
    )


def size(count: float | None) -> str:
    """``12 B``, ``3.4 kB``, ``1.2 GB``: decimal units."""
    if count is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def dollars(amount: float | None) -> str:
    """A modelled amount as in reports: ``$0.0031``, ``$4.2``, ``$1,200``; a dash for None."""
    return "–" if amount is None else modelled_dollars(amount)


def whole(text: str) -> Markup:
    """A whole text of any length, with invisible characters written out."""
    return Markup.escape(visible(text, None))


def cut(text: str, most: int) -> Markup:
    """A text cut after ``most`` characters; a longer one ends with the number of characters left out."""
    return Markup.escape(visible(text, most))


def as_json(value: Any) -> str:
    """The value as indented JSON; objects that JSON does not have, such as times, as text."""
    return json.dumps(value, indent=2, default=str, ensure_ascii=False)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "cut": cut,
    "dollars": dollars,
    "duration": duration,
    "given": given,
    "running": running,
    "size": size,
    "when": when,
    "whole": whole,
}
