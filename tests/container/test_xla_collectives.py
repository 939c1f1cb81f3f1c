"""Collectives through torch_xla and through torch.distributed give the right answer."""

from __future__ import annotations


def test_every_collective_gives_the_right_answer_on_every_rank(torchrun):
    """The script compares each with what it should be, exactly, also in groups and in several dtypes."""
    said = torchrun("collectives.py", "--compiled", workers=4).said
    assert len(said) == 4
    for entry in said:
        assert len(entry["checked"]) >= 61, entry["checked"]
    assert {"dist.send/recv", "dist.gather", "torch.compile"} <= set(said[1]["checked"])


def test_it_does_not_matter_how_small_the_shared_memory_is(torchrun):
    """With 1 MiB for all, the same answers: tensors pass through in pieces."""
    assert len(torchrun("collectives.py", workers=4, WINDTUNNEL_SHARED_MEMORY_MIB="1").said) == 4
