"""The instance types that are simulated, as far as running a job needs to know them.

Prices and speeds are `windtunnel.priceperf`'s business, and so are the sources of these
figures: a test holds them equal to its catalog, which would cost the server's start 70 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3


@dataclass(frozen=True)
class Instance:
    """A Trainium instance."""

    name: str
    neuron_cores: int
    host_memory_gib: int


INSTANCES = {
    instance.name: instance
    for instance in (
        Instance("ml.trn1.2xlarge", neuron_cores=2, host_memory_gib=32),
        Instance("ml.trn1.32xlarge", neuron_cores=32, host_memory_gib=512),
        Instance("ml.trn1n.32xlarge", neuron_cores=32, host_memory_gib=512),
    )
}
