"""Results of collectives live in host memory that the device is lent: nobody may notice."""

from __future__ import annotations


def test_reduced_tensors_stay_what_they_are_however_they_are_used(torchrun):
    """Also empty and scalar ones, ints with a scale, changed in place, reduced again, kept for later."""
    for entry in torchrun("lent.py").said:
        assert entry["wrong"] == []
        # ((1 + 2) reduced, + own, reduced, + own, reduced): 3, 2 * 3 + 3, 2 * 9 + 3.
        assert entry["gradient"] == [[21.0] * 3] * 4
