"""No line of a container's log is lost or doubled, however often following it is cut off."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel_local.runner.docker.log_cursor import (
    SLACK_NS,
    Cursor,
    LineAssembler,
    decode_line,
    split_timestamp,
)
from windtunnel_local.service.ground.containers import MAX_LINE_BYTES

START_NS = 1_767_323_045_000_000_000


@dataclass(frozen=True)
class Message:
    """One message as the engine stores it."""

    stream: int
    timestamp_ns: int
    data: bytes

    def on_the_wire(self) -> bytes:
        """What the engine sends with ``timestamps=1``."""
        seconds, nanoseconds = divmod(self.timestamp_ns, 1_000_000_000)
        day = seconds - 1_767_323_045
        minute, second = divmod(day + 5, 60)
        hour, minute = divmod(minute + 4, 60)
        return b"2026-01-02T%02d:%02d:%02d.%09dZ " % (3 + hour, minute, second, nanoseconds) + self.data


def replay(log: list[Message], cursor: Cursor, *, newer_engine: bool) -> list[Message]:
    """What the engine sends since the cursor: older ones filter each message, newer ones find the first."""
    if not newer_engine:
        return [m for m in log if m.timestamp_ns >= cursor.since_ns]
    first = next((i for i, m in enumerate(log) if m.timestamp_ns >= cursor.since_ns), len(log))
    return log[first:]


@st.composite
def logs(draw: st.DrawFn) -> list[Message]:
    """Two streams' lines, some in several parts, interleaved, with timestamps slightly out of order."""
    now = START_NS
    messages: list[Message] = []
    open_parts: dict[int, tuple[int, int]] = {}  # stream -> (timestamp of its first part, parts to come)
    for number in range(draw(st.integers(0, 40))):
        now += draw(st.sampled_from([0, 0, 1, 1_000_000, 1_000_000_000, 10_000_000_000]))
        stream = draw(st.sampled_from([1, 2]))
        stamp = now - draw(st.sampled_from([0, 0, 0, 500, 1_000_000]))
        text = f"{stream}-{number}".encode() + draw(st.sampled_from([b"", b"\r", b" x", b"\xff"]))
        if stream in open_parts:
            stamp, left = open_parts.pop(stream)  # the engine stamps all parts of a line alike
        else:
            left = draw(st.sampled_from([0, 0, 0, 1, 3]))
        if left:
            open_parts[stream] = (stamp, left - 1)
            messages.append(Message(stream, stamp, text))
        else:
            messages.append(Message(stream, stamp, text + b"\n"))
    return messages


def whole_lines(log: list[Message]) -> list[str]:
    """What must be delivered: lines in the order in which they were completed, the unfinished last."""
    assembler = LineAssembler(Cursor())
    lines = [assembler.feed(m.stream, m.on_the_wire()) for m in log]
    return [line.text for line in [*lines, *assembler.finish()] if line is not None]


def follow_with_cuts(
    log: list[Message], cuts: list[int], kept_every: int, *, newer_engine: bool
) -> list[str]:
    """Follow the log with a connection lost after each number of messages; then the rest."""
    delivered: list[str] = []
    cursor = Cursor()
    connections: list[int | None] = [*cuts, None]
    while connections:
        cut = connections[0]
        assembler = LineAssembler(cursor)
        visible = log if cut is None else log[:cut]
        batch: list[str] = []
        for message in replay(visible, cursor, newer_engine=newer_engine):
            line = assembler.feed(message.stream, message.on_the_wire())
            if line is not None:
                batch.append(line.text)
            if len(batch) >= kept_every or assembler.mistimed:
                delivered += batch
                batch = []
                cursor = Cursor.parse(str(assembler.cursor()))
            if assembler.mistimed:
                break
        if assembler.mistimed:
            continue
        if cut is None:
            batch += [line.text for line in assembler.finish()]
            delivered += batch
            cursor = assembler.cursor()
        del connections[0]
    again = LineAssembler(cursor)
    late = [again.feed(m.stream, m.on_the_wire()) for m in replay(log, cursor, newer_engine=newer_engine)]
    assert [line for line in late if line] + again.finish() == []
    return delivered


@given(log=logs(), cuts=st.lists(st.integers(0, 40)), kept=st.integers(1, 5), newer=st.booleans())
def test_every_line_comes_exactly_once_whatever_the_cuts(
    log: list[Message], cuts: list[int], kept: int, newer: bool
) -> None:
    """Parts, equal times, small disorder, unkept batches, both engines' idea of `since`: no harm."""
    assert follow_with_cuts(log, sorted(cuts), kept, newer_engine=newer) == whole_lines(log)


@given(before=logs(), after=logs(), cuts=st.lists(st.integers(0, 80)))
def test_a_clock_set_back_loses_nothing(before: list[Message], after: list[Message], cuts: list[int]) -> None:
    """While somebody follows: once a line came whose time ran backwards, positions are counted from the log's start.
    While nobody does: of an engine that sends all behind the first line of a time (`test_following.py` has the others).
    """
    jump = 60 * SLACK_NS
    late = [Message(m.stream, m.timestamp_ns + jump, m.data) for m in before]
    log = [m for m in [*late, *after] if m.data.endswith(b"\n")]
    # The first connection sees the jump; it is cut off behind it.
    assert follow_with_cuts(log, [len(log), *cuts], 1, newer_engine=False) == whole_lines(log)
    seen = sum(m.data.endswith(b"\n") for m in late)
    unseen = sorted([seen, *(seen + cut for cut in cuts)])
    assert follow_with_cuts(log, unseen, 1, newer_engine=True) == whole_lines(log)


@given(st.integers(0), st.integers(0), st.integers(0))
def test_a_cursor_survives_being_stored_as_text(since: int, skip: int, total: int) -> None:
    """`parse` and `str` are inverse."""
    cursor = Cursor(since, skip, total)
    assert Cursor.parse(str(cursor)) == cursor


def test_no_cursor_means_the_start() -> None:
    """A new log is read from its first line."""
    assert Cursor.parse(None) == Cursor(0, 0, 0)


def test_a_cursor_asks_the_engine_with_all_nanoseconds() -> None:
    """Rounding would repeat or lose lines."""
    assert Cursor(1_767_323_045_000_000_123).since == "1767323045.000000123"


def test_a_cursor_trails_by_little() -> None:
    """Resuming replays seconds of a log, not its hours."""
    assembler = LineAssembler(Cursor())
    for second in range(60):
        assembler.feed(1, Message(1, START_NS + second * 1_000_000_000, b"line\n").on_the_wire())
    cursor = assembler.cursor()
    assert cursor.total == 60
    assert cursor.skip <= 3


def test_parts_of_two_streams_are_joined_apart() -> None:
    """A long line of stdout is not torn by what stderr prints meanwhile."""
    assembler = LineAssembler(Cursor())
    lines = [
        assembler.feed(1, b"2026-01-02T03:04:05.1Z first half, "),
        assembler.feed(2, b"2026-01-02T03:04:05.2Z warning\n"),
        assembler.feed(1, b"2026-01-02T03:04:05.1Z second half\r\n"),
    ]
    texts = [line.text for line in lines if line is not None]
    assert texts == ["warning", "first half, second half"]


def test_a_line_that_never_ends_is_delivered_in_pieces() -> None:
    """Memory stays bounded."""
    assembler = LineAssembler(Cursor())
    part = b"2026-01-02T03:04:05Z " + b"x" * 16384
    lines = [assembler.feed(1, part) for _ in range(3 * MAX_LINE_BYTES // 16384)]
    assert [len(line.text) for line in lines if line is not None] == [MAX_LINE_BYTES] * 3


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain"),
        (b"windows\r\n", "windows"),
        (b"\n", ""),
        (b"50%\r100%\n", "50%\r100%"),
        (b"no end", "no end"),
        (b"no end\r", "no end\r"),
        ("Zürich\n".encode(), "Zürich"),
        (b"broken \xff\xfe\n", "broken \ufffd\ufffd"),
    ],
)
def test_a_line_is_its_text_without_its_end(data: bytes, text: str) -> None:
    """Line ends go, all else stays; what is not UTF-8 is shown as such."""
    assert decode_line(data) == text


def test_timestamps_are_exact_to_the_nanosecond() -> None:
    """And the time of a message is Unix time in UTC."""
    assert split_timestamp(b"2026-01-02T03:04:05.123456789Z a b\n") == (START_NS + 123_456_789, b"a b\n")
    assert split_timestamp(b"2026-01-02T03:04:05Z \n") == (START_NS, b"\n")


def test_a_message_without_time_is_refused() -> None:
    """Better a clear error than lines that cannot be resumed."""
    with pytest.raises(ValueError, match="no UTC timestamp"):
        split_timestamp(b"hello\n")
