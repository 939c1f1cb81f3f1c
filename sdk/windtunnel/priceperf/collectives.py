"""The time of collectives: rings inside an instance, then rings between instances.

The payload is what one worker hands in. Over several instances a collective is
hierarchical: reduce-scatter inside, the exchange of shards over the network
(all workers of an instance share it), all-gather inside. Inside, that moves the
same bytes as one ring; the network adds its own term.
"""

from __future__ import annotations

from dataclasses import dataclass

from .catalog import InstanceType
from .compute import check_efficiency
from .errors import InvalidInput

LATENCY_S = 50e-6
"""Start of one collective. Assumption: the order of magnitude of NCCL and of the Neuron runtime."""

# How many times the (full) payload crosses a link in a ring of n, as a factor of (n - 1) / n.
_PASSES = {
    "all_reduce": 2.0,
    "reduce_scatter": 1.0,
    "all_gather": 1.0,
    "all_to_all": 1.0,
    "broadcast": 1.0,
    "collective_permute": 1.0,
}


@dataclass(frozen=True)
class Collective:
    """Collectives of one kind in one step of one worker.

    ``count`` of them, together ``payload_bytes``. For all_gather the payload is
    the gathered result, so that it does not change with the number of workers.
    """

    kind: str
    count: float
    payload_bytes: float


def collective_seconds(
    collective: Collective, instance: InstanceType, efficiency: float, instance_count: int = 1
) -> float:
    """Seconds one worker spends in these collectives, nothing else running.

    Kinds that are not listed (a barrier, a send) count as one pass.

    Raises:
        InvalidInput: efficiency out of range, negative bytes, or no instance.
    """
    check_efficiency(efficiency)
    if instance_count < 1:
        raise InvalidInput(f"a job has at least 1 instance, not {instance_count}")
    if collective.payload_bytes < 0 or collective.count < 0:
        raise InvalidInput(f"a collective cannot have a negative count or size: {collective}")
    passes = _PASSES.get(collective.kind, 1.0)
    inside = _ring(collective.payload_bytes * passes, instance.core_count)
    between = _ring(collective.payload_bytes * passes, instance_count)
    return (
        inside / (instance.core_link_bandwidth * efficiency)
        + between / (instance.network_bandwidth * efficiency)
        + (collective.count * LATENCY_S if instance.core_count * instance_count > 1 else 0.0)
    )


def _ring(payload_bytes: float, members: int) -> float:
    return payload_bytes * (members - 1) / members
