"""The time of collectives: bytes over the links and the network, and the latency of hops.

Inside an instance a ring moves the payload over each core's links; between instances the
rings of an instance share its network. The latency of one hop is added for each member of
the ring and each message; it dominates for small messages and many members. The published
rows of up to 512 workers show that the ring runs through all members, also over many
instances (`calibration`); see `hops` for more members.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..instances import InstanceType
from .engines import Constants

BUCKET_BYTES = 50e6
"""Gradients travel in buckets of this size (torch_xla's ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB=50)."""

RING_MEMBERS = 512
"""The largest ring in published rows of trn1. Assumption: more members form several rings that a tree joins, as
with NCCL."""


class Kind(NamedTuple):
    """One kind of collective. ``passes``: in a ring of n, each link carries ``passes`` x (n - 1) / n of the payload.

    ``counts_shard``: a rehearsal counts one worker's shard of the payload, not all of it.
    """

    passes: float
    counts_shard: bool = False


KINDS = {
    "all_reduce": Kind(2.0),
    "reduce_scatter": Kind(1.0),
    "all_gather": Kind(1.0, counts_shard=True),
    "all_to_all": Kind(1.0),
    "broadcast": Kind(1.0),
    "collective_permute": Kind(1.0),
    "send": Kind(1.0),
    "recv": Kind(1.0),
}
"""Assumption: an all_to_all, a permutation, a send and a recv go once around the ring."""


class Collective(NamedTuple):
    """All collectives of one kind (of `KINDS`) in one step of one worker.

    There are ``times`` of them, with ``payload_bytes`` together. The payload of an all_gather
    is the gathered result, so it does not change with the number of workers.
    """

    kind: str
    times: float
    payload_bytes: float


class Group(NamedTuple):
    """The workers of a collective: ``members`` in all, ``local`` of them in each instance; 1 or more of both.

    ``sharing``: number of such groups that send over one instance's network at the same time.
    """

    members: int
    local: int
    sharing: int = 1

    @property
    def instances(self) -> int:
        """Number of instances over which the group spreads."""
        return math.ceil(self.members / self.local)


def collective_seconds(
    collective: Collective, instance: InstanceType, constants: Constants, group: Group
) -> float:
    """Seconds that one worker spends in these collectives if nothing else runs."""
    passes = KINDS[collective.kind].passes
    payload = collective.payload_bytes * passes
    return (
        _ring(payload, group.local) / (instance.core_link_bandwidth * constants.link)
        + _ring(payload, group.instances) * group.sharing / (instance.network_bandwidth * constants.network)
        + collective.times * passes * hops(group.members) * constants.hop_s
    )


def hops(members: int) -> float:
    """Steps of one pass through all members: of a ring up to `RING_MEMBERS`, beyond that of a tree of rings.

    Each doubling of the number of rings is one more step of the tree.
    """
    return min(members, RING_MEMBERS) - 1 + math.log2(max(1.0, members / RING_MEMBERS))


def buckets(payload_bytes: float) -> float:
    """Number of messages of a reduction of gradients; see `BUCKET_BYTES`."""
    return math.ceil(payload_bytes / BUCKET_BYTES)


def _ring(payload_bytes: float, members: int) -> float:
    return payload_bytes * (members - 1) / members
