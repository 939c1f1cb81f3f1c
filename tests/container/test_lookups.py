"""An index outside of an embedding ends the step, as the Neuron runtime does; XLA would take another row."""

from __future__ import annotations


def test_an_index_that_no_row_has_is_refused_with_its_line(torchrun):
    """From a loader or by hand, of a view what it shows; what is inside, traced or not computed yet goes its way."""
    *refused, gradient = torchrun("lookups.py", workers=1).said
    assert [said["case"] for said in refused] == [
        "beyond",
        "below",
        "all but the first",
        "another shape",
        "of 32 bits",
        "from a loader",
    ]
    for said in refused:
        index = -1 if said["case"] == "below" else 10
        assert f": index {index} is looked up in an embedding of 10 rows (0 to 9)" in said["error"]
        assert said["error"].startswith("lookups.py:")
        assert "NRT_EXEC_OOB" in said["error"]
    assert gradient["counts"] == [4.0] * 10
