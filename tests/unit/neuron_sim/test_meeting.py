"""What the cores of a host leave for each other."""

from __future__ import annotations

from pathlib import Path

from neuron_sim.diagnostics.meeting import Meeting


def test_what_each_core_has_left_is_there_whole(tmp_path: Path) -> None:
    """Once a core, and not what one has only begun to write."""
    first, second = (Meeting(tmp_path / "made", rank) for rank in (0, 1))
    assert (first.left(), first.has_left) == ({}, False)
    first.leave("a")
    first.leave("b")
    (tmp_path / "made" / ".1").write_text("half")
    assert (second.left(), first.has_left, second.has_left) == ({0: "a"}, True, False)
    second.leave("whole")
    assert first.left() == second.left() == {0: "a", 1: "whole"}


def test_where_nothing_can_be_left_nothing_fails(tmp_path: Path) -> None:
    """No folder, or a file in its place."""
    (tmp_path / "file").touch()
    for folder in (None, tmp_path / "file", tmp_path / "file" / "below"):
        meeting = Meeting(folder, 0)
        meeting.leave("a")
        assert (meeting.left(), meeting.has_left) == ({}, True)
