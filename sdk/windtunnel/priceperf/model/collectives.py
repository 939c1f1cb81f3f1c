"""The time of collectives: bytes over the links and the network, and hops.

Inside an instance a ring moves the payload over each core's links; between instances the
shards of all rings of an instance share its network. To that comes the latency of one hop
for each member of the ring and each message: small messages, and many members, are bound
by the hops. That the ring runs through all members, also over many instances, is what the
published rows of up to 512 workers show (`calibration`); see `hops` for more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..errors import InvalidInput
from ..instances import InstanceType
from .engines import Constants

BUCKET_BYTES = 50e6
"""Gradients travel in buckets of this size (torch_xla's ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB=50)."""

RING_MEMBERS = 512
"""The largest ring that published rows of trn1 show. That more members form several, joined by a tree, as
NCCL's do, is an assumption."""


class Kind(NamedTuple):
    """``passes``: in a ring of n, each link carries ``passes`` x (n - 1) / n of the (full) payload.

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
    """Collectives of one kind, of `KINDS`, in one step of one worker.

    ``times`` of them, together ``payload_bytes``. For all_gather the payload is
    the gathered result, so that it does not change with the number of workers.
    """

    kind: str
    times: float
    payload_bytes: float

    @classmethod
    def of_counted(cls, kind: str, count: float, counted_bytes: float, workers: int) -> Collective:
        """Of the bytes that one of so many workers counted.

        Raises:
            InvalidInput: a kind that is not in `KINDS`, or a negative count or size.
        """
        if kind not in KINDS:
            raise InvalidInput(f"no figures for a collective {kind!r}; known are {', '.join(KINDS)}")
        found = cls(kind, count, counted_bytes * workers if KINDS[kind].counts_shard else counted_bytes)
        if found.payload_bytes < 0 or count < 0:
            raise InvalidInput(f"a collective cannot have a negative count or size: {found}")
        return found


class Group(NamedTuple):
    """Who takes part: ``members`` workers, ``local`` of them in each instance.

    ``sharing``: how many such groups send over one instance's network at the same time.
    """

    members: int
    local: int
    sharing: int = 1

    @property
    def instances(self) -> int:
        """Over how many instances the group spreads."""
        return math.ceil(self.members / self.local)


def collective_seconds(
    collective: Collective, instance: InstanceType, constants: Constants, group: Group
) -> float:
    """Seconds one worker spends in these collectives, nothing else running.

    Raises:
        InvalidInput: an empty group.
    """
    if not 1 <= group.local <= group.members:
        raise InvalidInput(f"a group has at least 1 member, and no more in an instance than in all: {group}")
    passes = KINDS[collective.kind].passes
    payload = collective.payload_bytes * passes
    return (
        _ring(payload, group.local) / (instance.core_link_bandwidth * constants.link)
        + _ring(payload, group.instances) * group.sharing / (instance.network_bandwidth * constants.network)
        + collective.times * passes * hops(group.members) * constants.hop_s
    )


def hops(members: int) -> float:
    """Steps of one pass through so many members: a ring up to `RING_MEMBERS`, beyond it a tree of rings.

    Each doubling of the rings is one more step of the tree.
    """
    return min(members, RING_MEMBERS) - 1 + math.log2(max(1.0, members / RING_MEMBERS))


def buckets(payload_bytes: float) -> float:
    """Into how many messages a reduction of gradients is cut."""
    return math.ceil(payload_bytes / BUCKET_BYTES)


def _ring(payload_bytes: float, members: int) -> float:
    return payload_bytes * (members - 1) / members
