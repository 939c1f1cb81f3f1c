"""What is sent to a container of a transform job, and how."""

from __future__ import annotations

import io
import tracemalloc

from windtunnel_local.service.batch.splitting import payloads

_MB = 1 << 20


def test_short_lines_take_no_more_memory_than_long_ones() -> None:
    """A file of nothing but newlines is held a few times, not an object for each line."""
    stream = io.BytesIO(b"\n" * _MB)
    tracemalloc.start()
    try:
        (payload,) = payloads(stream, by_line=True, several=True, most_mb=6, processing=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert payload.body == b"\n" * _MB
    assert peak < 4 * _MB
