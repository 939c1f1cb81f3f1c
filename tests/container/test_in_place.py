"""In-place operations whose shapes the simulator works out itself, where that is quick."""

from __future__ import annotations


def test_they_do_and_refuse_what_they_do_and_refuse_on_the_host(torchrun):
    """Of one shape, with numbers, broadcast, on a view, of other types; and where the result would not fit."""
    (said,) = torchrun("in_place.py", workers=1).said
    assert said["alike"] == [True] * 9
    assert said["refused"] == [True] * 14
