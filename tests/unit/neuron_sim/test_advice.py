"""What is said of a script, in words."""

from __future__ import annotations

from neuron_sim.diagnostics import advice


def test_a_compilation_that_alarms_xla_is_explained() -> None:
    """XLA asks for a bug report; what it did is this machine's affair, and a note."""
    assert advice.slow_compile("train.py:9", 119.0) is None
    found = advice.slow_compile("train.py:9", 294.0)
    assert found is not None
    assert (found.severity, found.line, found.seconds) == ("note", "train.py:9", 294.0)
    assert "Very slow compile?" in found.message and "neuronx-cc" in found.message
