"""Following a growing file line by line, from any position, exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from windtunnel_local.service.ground.containers import MAX_LINE_BYTES, LogBatch, LogLine

_MOST_LINES = 20_000
"""Most bytes of one batch: a megabyte may be a million lines, and each becomes several objects."""
_POLL_S = 0.05


def follow_file(
    path: Path,
    cursor: str | None,
    running: Callable[[], bool],
    pause_s: Callable[[], float] = lambda: _POLL_S,
) -> Iterator[LogBatch]:
    """Lines of ``path`` behind ``cursor`` (a byte offset) until ``running`` says no and all is read.

    A line's time is when it was read. Blocks between lines, ``pause_s()`` at a time (0.05 s).
    """
    offset = int(cursor or 0)
    while True:
        alive = running()  # asked before reading: what is printed before the end is then surely read
        lines, offset = _read_lines(path, offset, at_end=not alive)
        if lines:
            yield LogBatch(tuple(lines), str(offset))
        elif not alive:
            return
        else:
            time.sleep(pause_s())


def _read_lines(path: Path, offset: int, *, at_end: bool) -> tuple[list[LogLine], int]:
    """Complete lines from ``offset`` on, and the offset behind them; at the end also the incomplete last."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(MAX_LINE_BYTES)
    except FileNotFoundError:
        return [], offset
    now_ms = time.time_ns() // 1_000_000
    end = data.rfind(b"\n") + 1
    if end == 0 and (len(data) >= MAX_LINE_BYTES or at_end):
        end = len(data)
    if end == 0:
        return [], offset
    pieces = data[:end].removesuffix(b"\n").split(b"\n", _MOST_LINES)
    if len(pieces) > _MOST_LINES:
        end -= len(pieces.pop()) + data[:end].endswith(b"\n")
    texts = [piece.removesuffix(b"\r").decode("utf-8", errors="replace") for piece in pieces]
    return [LogLine(now_ms, text) for text in texts], offset + end
