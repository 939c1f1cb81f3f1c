"""What is sent to a container of a transform job, and how."""

from __future__ import annotations

import io
import tracemalloc

import pytest

from windtunnel_local.service.batch.data_processing import data_processing
from windtunnel_local.service.batch.splitting import payloads
from windtunnel_local.service.ground.errors import InputError

_LINES = 1 << 15


def test_short_lines_take_no_more_memory_than_long_ones() -> None:
    """A file of nothing but newlines is held a few times, not an object for each line."""
    stream = io.BytesIO(b"\n" * _LINES)
    tracemalloc.start()
    try:
        (payload,) = payloads(stream, by_line=True, several=True, most_mb=6, processing=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert payload.body == b"\n" * _LINES
    assert peak < 4 * _LINES


def test_a_blank_line_of_json_is_told_before_it_is_asked() -> None:
    """It can be joined with no answer: the file's fault, and not the container's."""
    processing = data_processing(
        {
            "DataProcessing": {"JoinSource": "Input"},
            "TransformInput": {"ContentType": "application/jsonlines", "SplitType": "Line"},
            "TransformOutput": {"Accept": "application/jsonlines", "AssembleWith": "Line"},
        }
    )
    stream = io.BytesIO(b'{"a": 1}\n\n')
    asked = payloads(stream, by_line=True, several=False, most_mb=6, processing=processing)
    with pytest.raises(InputError, match="a record is a blank line"):
        list(asked)
