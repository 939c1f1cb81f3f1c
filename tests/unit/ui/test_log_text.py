"""Lines of a log as they are shown: nothing that a script prints acts, hides or turns what is beside it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.ui.job.log_position import host_of, read, written
from windtunnel_local.ui.job.log_text import SHOWN_CHARACTERS, shown


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("plain", "plain"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bcharset \x1b7saved", "charset saved"),
        ("\x9b31mC1", "C1"),
        ("10 %\r50 %\r100 %\r\n", "100 %"),
        ("tab\there", "tab\there"),
        ("bell\x07 null\x00", "bell\\x07 null\\x00"),
        ("two\nlines", "two\\nlines"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("<b>&amp;", "<b>&amp;"),
    ],
)
def test_what_is_shown(line: str, text: str) -> None:
    """A terminal's orders are gone, the last of an overwritten line stays, what cannot be seen is written out."""
    assert shown(line)[0] == text


@given(st.text(max_size=5000))
def test_any_line_is_harmless(line: str) -> None:
    """No control but a tab, no mark that turns text, no more than is shown; and it can be sent."""
    text, length = shown(line)
    assert len(text) <= SHOWN_CHARACTERS
    assert not any((c < " " and c != "\t") or c in "\x1b\x9b\u202e\u2066\u200f" for c in text)
    text.encode()
    assert length in (0, len(line))


@pytest.mark.parametrize("piece", ["x", "\x1b]", "\x1b[", "\u202e", "\r", "\x1bP"])
def test_ten_megabytes_take_no_time(piece: str) -> None:
    """A line of 10 MB, of orders that never end too, is cut, says its length, and does not keep the page."""
    line = piece * (10_000_000 // len(piece))
    begun = time.thread_time()
    text, length = shown(line)
    assert time.thread_time() - begun < 1
    assert len(text) <= SHOWN_CHARACTERS
    assert length == (len(line) if piece != "\r" else 0)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}-[0-9]{1,3}-[0-9]{10}", fullmatch=True), st.integers(0, 10**12), max_size=6
    )
)
def test_a_place_in_the_log_comes_back_from_its_link(position: dict[str, int]) -> None:
    """Whatever the streams."""
    assert dict(read(written(position))) == position


@pytest.mark.parametrize(
    "text",
    ["x", "a:b", "a:-1", ":3", "a:1,", "a:1;b:2", "../x:1", "a" * 200 + ":1", "a:" + "9" * 16, "a:1," * 9000],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    """With a message that shows what one looks like."""
    with pytest.raises(ValidationFailed, match="place in"):
        read(text)


def test_a_stream_is_of_a_host() -> None:
    """Its name without the time."""
    assert host_of("algo-12-1760000000") == "algo-12"
