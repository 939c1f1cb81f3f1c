"""What is said of a script, in words."""

from __future__ import annotations

import pytest

from neuron_sim.counters.why_new import Reason
from neuron_sim.diagnostics import advice, for_graphs


@pytest.mark.parametrize(
    ("cuts", "again", "said"),
    [
        (0, 0, "9 steps, 1.00 s waited here. The host stops until the device has finished."),
        (2, 0, "9 steps, 1.00 s waited here. The host stops until the device has finished. It cut the step into "
         "separate graphs 2 times, each compiled and run on its own."),
        (2, 1, "waited here, and what it is computed from, as the forward pass, is computed again. The host stops "
         "until the device has finished. It cut the step into separate graphs 2 times, each compiled and run on its "
         "own."),
    ],
)  # fmt: skip
def test_a_value_that_is_read_repeats_work_only_where_some_is_left(cuts: int, again: int, said: str) -> None:
    """After a step's end, and in evaluation, nothing is."""
    found = advice.host_read("train.py:9", [".item()"], 9, 1.0, 9, cuts, again)
    assert found.message.endswith(said)


def test_a_compilation_that_alarms_xla_is_explained() -> None:
    """XLA asks for a bug report; what it did is this machine's affair, and a note."""
    assert for_graphs.slow_compile("train.py:9", 119.0) is None
    found = for_graphs.slow_compile("train.py:9", 294.0)
    assert found is not None
    assert (found.severity, found.line, found.seconds) == ("note", "train.py:9", 294.0)
    assert "Very slow compile?" in found.message and "neuronx-cc" in found.message


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("slice with slice={[0:10]} is now with slice={[10:20]}", "data.index_select(0, torch.arange("),
        ("pad with padding=0_30 is now with padding=10_20", "index_copy_ to write them"),
        ("a constant was 0.01 (f32[]) and is 0.02 (f32[])", "torch.tensor(value, device=device)"),
    ],
)
def test_a_number_in_the_graph_becomes_an_input(detail: str, said: str) -> None:
    """A slice's bound does not by being a tensor: torch reads that, and the graph has the number."""
    found = for_graphs.recompiles(Reason("scalar", detail), "train.py:9", "", 9, 1.0, 9, 9)
    assert said in found.advice
