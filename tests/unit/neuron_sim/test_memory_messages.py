"""What is said when device memory does not suffice, and XLA's memory plan."""

from __future__ import annotations

from neuron_sim.counters.graphs import plan
from neuron_sim.device import memory_messages

GIB = 2**30


def test_the_error_names_need_limit_parts_line_and_what_to_do() -> None:
    """In the runtime's words; the largest part first, in the parts and in the advice."""
    parts = {"parameters": 6 * GIB, "gradients": 0, "optimizer_state": 12 * GIB, "temporaries": 2 * GIB}
    text = memory_messages.message(parts, 6 * GIB, 16 * GIB, 3, 2, "train.py:9", "tensors")
    assert text.startswith(
        "RESOURCE_EXHAUSTED: Failed to allocate 14.000GB (alignment: none, usage: tensors) on ND 1:NC 3"
    )
    assert "at train.py:9 this core needs 20.000GB of device memory and has 16.000GB" in text
    assert "optimizer state 12.000GB, parameters 6.000GB, temporaries 2.000GB" in text
    assert text.index("ZeRO-1") < text.index("bf16 parameters")
    assert "gradients" not in text
    assert len(text) < 900


def test_a_small_machine_is_not_blamed_on_the_device() -> None:
    """What would fit on trn1 but not here says so."""
    text = memory_messages.host_message({"parameters": 12 * GIB}, 20 * GIB, 16 * GIB, 2, "train.py:9")
    assert "2 workers need 12.000GB each" in text
    assert "there it fits" in text


def test_temporaries_are_read_from_xlas_plan_once_each() -> None:
    """Inputs, outputs and constants are no temporaries; the list with values repeats the first."""
    report = """Total bytes used: 2171100 (2.07MiB)

Allocations sorted by size:

cumulative_size; total_size - cumulative_size; allocation
------------------------------------------------------------------------------
  522.0KiB( 25%);    1.56MiB; allocation 29: size 522.0KiB, preallocated-temp:
   1.01MiB( 49%);    1.06MiB; allocation 0: size 512.0KiB, parameter 3, shape |f32[512,256]|, maybe-live-out:
   2.07MiB(100%);        16B; allocation 24: size 4B, thread-local:

Allocations sorted by size with their values:
allocation 29: size 522.0KiB, preallocated-temp:
"""
    assert plan(report) == (2171100, 522 * 1024 + 4)
    assert plan("") == (0, 0)
