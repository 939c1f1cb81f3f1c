"""When nodes ran."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from windtunnel_local.cluster.node_log import append, read, up_times

START = datetime(2026, 11, 23, 2, 30, tzinfo=timezone.utc)
KIND = "trn1.32xlarge"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """Times to the millisecond; a node that still runs has no end; one that was lost ended when it came back."""
    append(tmp_path, "q-dy-r-1", KIND, "up", at(0))
    append(tmp_path, "q-st-r-1", KIND, "up", at(1.25))
    append(tmp_path, "q-dy-r-1", KIND, "down", at(60))
    append(tmp_path, "q-dy-r-1", KIND, "up", at(90))
    append(tmp_path, "q-st-r-1", KIND, "up", at(100))
    ran = [(up.node, up.since, up.until) for up in up_times(read(tmp_path))]
    assert ran == [
        ("q-dy-r-1", at(0), at(60)),
        ("q-st-r-1", at(1.25), at(100)),
        ("q-dy-r-1", at(90), None),
        ("q-st-r-1", at(100), None),
    ]


def test_lines_that_are_none_are_left_out(tmp_path: Path) -> None:
    """A crash may have cut one short; a cluster of an earlier version has no file."""
    assert read(tmp_path) == ()
    append(tmp_path, "q-dy-r-1", KIND, "up", at(0))
    with (tmp_path / "nodes.jsonl").open("a") as file:
        file.write(
            '[]\n{"node": "x"}\n{"node": 1, "instance_type": "a", "event": "up", "time": "2026-01-01"}\n'
        )
        file.write('{"node": "q-dy-r-1", "instance_type": "trn1.32xl')
    assert len(read(tmp_path)) == 1
