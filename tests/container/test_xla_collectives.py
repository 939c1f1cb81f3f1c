"""Collectives through torch_xla and through torch.distributed give the right answer."""

from __future__ import annotations

import re


def test_every_collective_gives_the_right_answer_on_every_rank(torchrun):
    """The script compares each with what it should be, exactly, also in groups and in several dtypes; with little
    shared memory. Tensors that pass through it in pieces: test_collective_properties.py.
    """
    said = torchrun("collectives.py", "--compiled", workers=4, WINDTUNNEL_SHARED_MEMORY_MIB="1").said
    assert len(said) == 4
    for entry in said:
        assert len(entry["checked"]) >= 61, entry["checked"]
    assert {"dist.send/recv", "dist.gather", "torch.compile"} <= set(said[1]["checked"])
    assert {"xm.send", "xm.recv", "xm.recv in place", "xm.recv again"} <= set(said[3]["checked"])


def test_a_lone_recv_is_an_error_and_a_lone_send_is_told(torchrun):
    """The receiver's error names its line and what became of the others; what nobody received is said."""
    launch = torchrun("ends.py", "lone-recv", check=False)
    assert launch.code == 1
    assert re.search(
        r"no other rank is left that could send on channel 5; rank 0 waited in recv at ends.py:\d+",
        launch.output,
    )
    launch = torchrun("ends.py", "lone-send")
    assert re.search(
        r"rank 0: send on channel 5 of float32\[2\] at ends.py:\d+ was never received", launch.output
    )
