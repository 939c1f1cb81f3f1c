"""What the simulator says when it cannot do as asked.

NeuronSimError
├── NotSimulatedError      a real feature that is not simulated (also an AttributeError, so that probing works)
├── TopologyError          an instance type or core count that does not exist
└── CollectiveError        a collective that cannot complete
    ├── MismatchError      the ranks called different collectives
    └── PeerLostError      a rank ended, or did not come in time
"""

from __future__ import annotations


class NeuronSimError(RuntimeError):
    """Root of the simulator's errors."""


class NotSimulatedError(NeuronSimError, AttributeError):
    """A feature of the real device that the simulator refuses rather than ignores."""

    def __init__(self, feature: str, instead: str = "") -> None:
        advice = f" {instead}" if instead else ""
        super().__init__(
            f"{feature} is not simulated by Windtunnel's NeuronCores: it would silently do nothing here.{advice}"
        )


class TopologyError(NeuronSimError):
    """No such instance type, or a number of cores it does not have."""


class CollectiveError(NeuronSimError):
    """A collective operation that cannot complete."""


class MismatchError(CollectiveError):
    """The ranks of a group called different collectives, or with different shapes."""


class PeerLostError(CollectiveError):
    """Another rank of the group has ended, or did not join in time."""
