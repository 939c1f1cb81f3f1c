"""All names together."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_sim.names import neuron_names, torch_distributed_names, torch_xla_names
from neuron_sim.names.name import Name


def every() -> Iterator[Name]:
    """All names, in the order of the documentation's table."""
    yield from torch_xla_names.NAMES
    yield from torch_distributed_names.NAMES
    yield from neuron_names.NAMES
