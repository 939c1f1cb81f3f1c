"""What others wrote, and values, as a page shows them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup

from windtunnel_local.ui import formats
from windtunnel_local.ui.site import environment
from windtunnel_local.ui.text import MOST_CHARACTERS, visible

NOW = datetime(2026, 7, 31, 12, 0, 0, tzinfo=timezone.utc)
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@given(st.text(alphabet=st.characters(codec=None), max_size=50))
def test_nothing_stays_invisible(text: str) -> None:
    """No control, no mark that turns text, no half of a character; what can be seen is as it was."""
    shown = visible(text)
    assert not set(shown) & {*map(chr, {*range(9), *range(11, 32), *range(127, 160)}), *TURNING}
    shown.encode()
    if text.isprintable() and text.isascii():
        assert shown == text


def test_what_is_hidden_is_written_out() -> None:
    """So that a reader sees what is there."""
    assert visible("a\x1b[31mb\u202ec\td\n") == "a\\x1b[31mb\\u202ec\td\n"


def test_long_texts_are_cut_and_say_so() -> None:
    """10 MB of a line are a page of some kB."""
    shown = visible("x" * 10_000_000)
    assert len(shown) < MOST_CHARACTERS + 50
    assert shown.endswith("… (9,990,000 more characters)")
    assert visible("x" * 20_000, None) == "x" * 20_000


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0, "0 s"),
        (3.21, "3.2 s"),
        (9.99, "10 s"),
        (59.4, "59 s"),
        (59.9, "1 min 00 s"),
        (250, "4 min 10 s"),
        (3600, "1 h 00 min"),
        (11_100, "3 h 05 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    """Two units at most."""
    assert formats.duration(seconds) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(None, "–"), (0, "$0"), (0.00312, "$0.0031"), (0.13, "$0.13"), (4.2, "$4.2"), (1203.6, "$1,200")],
)
def test_dollars(amount: float | None, shown: str) -> None:
    """As a report writes what it has modelled: with no more digits than are known."""
    assert formats.dollars(amount) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (3.4e6, "3.4 MB"),
        (2.5e11, "250 GB"),
        (2e12, "2.0 TB"),
    ],
)
def test_sizes(count: float | None, shown: str) -> None:
    """Decimal units."""
    assert formats.size(count) == shown


def test_times_are_elements_that_a_script_can_read() -> None:
    """UTC for who has none."""
    assert formats.when(NOW) == (
        '<time datetime="2026-07-31T12:00:00.000+00:00">2026-07-31 12:00:00 UTC</time>'
    )
    assert formats.when(None) == "–"
    since = NOW - timedelta(seconds=75)
    assert (
        formats.running(since, NOW) == f'<span data-since="{int(since.timestamp() * 1000)}">1 min 15 s</span>'
    )
    assert formats.running(NOW + timedelta(seconds=5), NOW).endswith(">0 s</span>")


def test_a_template_cannot_forget_to_escape() -> None:
    """Whatever a template writes is escaped and made visible; only markup of our own is not."""
    template = environment().from_string("{{ text }}|{{ markup }}|<i title='{{ text }}'>")
    shown = template.render(text="<b>'\u202e", markup=Markup("<b>"))
    assert shown == "&lt;b&gt;&#39;\\u202e|<b>|<i title='&lt;b&gt;&#39;\\u202e'>"
    with pytest.raises(UndefinedError):
        environment().from_string("{{ missing }}").render()
