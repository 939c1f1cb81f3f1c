"""One object a worker, through which all its collectives go."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import torch

from neuron_sim.collectives import region as regions
from neuron_sim.collectives.across_hosts import AcrossHosts
from neuron_sim.collectives.arrival import Arrival
from neuron_sim.collectives.reduction import operation
from neuron_sim.collectives.within_host import WithinHost
from neuron_sim.errors import MismatchError, NeuronSimError
from neuron_sim.settings import Identity

LAUNCH_VARIABLE = "NEURON_SIM_LAUNCH"
"""Set by our torchrun to a name of its own, so that it can clean up after workers that died early."""


class Communicator:
    """Collectives over global ranks.

    Inside one host they go through shared memory. A group that spans hosts is
    served inside first where that saves traffic (all_reduce), else by gloo.
    Tensors are on the CPU; every method blocks until the group has met.
    """

    def __init__(self, identity: Identity, shared_memory_bytes: int, timeout_s: float) -> None:
        """Nothing is opened before the first collective."""
        self._identity = identity
        self._shared_memory_bytes = shared_memory_bytes
        self._timeout_s = timeout_s
        self._within: WithinHost | None = None
        self._across: AcrossHosts | None = None

    def join(self) -> None:
        """Be known to the other workers of this host, so that they notice when this one ends."""
        if self._identity.local_world_size > 1:
            self._shared()

    def leave(self) -> None:
        """Take part in nothing more: whoever still waits for this rank is told."""
        if self._within is not None:
            self._within.leave()
        if self._across is not None:
            self._across.close()

    def group_of(self, groups: Sequence[Sequence[int]] | None) -> list[int]:
        """The group that this rank is in; all ranks when there are no groups.

        Raises:
            ValueError: this rank is in none, or a rank does not exist.
        """
        me, world = self._identity.rank, self._identity.world_size
        if not groups:
            return list(range(world))
        for group in groups:
            if me in group:
                members = [int(rank) for rank in group]
                if len(set(members)) != len(members) or not all(0 <= rank < world for rank in members):
                    raise ValueError(f"group {members} is not a set of ranks of a world of {world}")
                return members
        raise ValueError(f"rank {me} is in none of the groups {[list(group) for group in groups]}")

    def agree(self, group: Sequence[int], what: str) -> None:
        """See that all ranks of the group do the same; raises MismatchError with each rank's words."""
        local = self._local(group)
        if local is not None:
            self._shared().agree(local, what)
            return
        said = self._gloo().agree(group, what)
        if len({text.rpartition(" at ")[0] for text in said.values()}) > 1:
            lines = "\n".join(f"  rank {rank}: {text}" for rank, text in said.items())
            raise MismatchError(f"the ranks of this group called different collectives:\n{lines}")

    def all_reduce(self, tensor: torch.Tensor, name: str, group: Sequence[int]) -> torch.Tensor:
        """The reduction over the group, the same bits on every rank. Same shape and dtype."""
        name = operation(name)
        flat = tensor.contiguous().reshape(-1).clone()
        if len(group) == 1 or flat.numel() == 0:
            return flat.view(tensor.shape)
        local = self._local(group)
        if local is not None:
            self._shared().all_reduce(flat, name, local)
        else:
            self._all_reduce_across(flat, name, group)
        return flat.view(tensor.shape)

    def _all_reduce_across(self, flat: torch.Tensor, name: str, group: Sequence[int]) -> None:
        """Inside each host, then between one leader a host, then inside again."""
        per_host = self._identity.local_world_size
        inside = [
            rank - self._identity.local_ranks.start for rank in group if rank in self._identity.local_ranks
        ]
        leaders = list({rank // per_host: rank for rank in sorted(group, reverse=True)}.values())[::-1]
        leader = inside[0] if len(inside) == 1 else min(inside)
        if len(inside) > 1:
            self._shared().all_reduce(flat, name, inside)
        if self._identity.local_rank == leader:
            self._gloo().all_reduce(flat, name, leaders)
        if len(inside) > 1:
            flat.copy_(self._shared().permute(flat, leader, inside))

    def all_gather(self, tensor: torch.Tensor, group: Sequence[int]) -> torch.Tensor:
        """Every rank's tensor in the order of the group: shape (len(group), *tensor.shape)."""
        flat = tensor.contiguous().reshape(-1)
        shape = (len(group), *tensor.shape)
        if len(group) == 1 or flat.numel() == 0:
            return flat.clone().expand(len(group), -1).reshape(shape)
        local = self._local(group)
        result = (
            self._shared().all_gather(flat, local)
            if local is not None
            else self._gloo().all_gather(flat, group)
        )
        return result.view(shape)

    def all_to_all(self, parts: torch.Tensor, group: Sequence[int]) -> torch.Tensor:
        """``parts[j]`` goes to the group's rank j; the result's ``[j]`` came from it. Same shape."""
        rows = parts.contiguous().reshape(len(group), -1)
        if len(group) == 1 or rows.numel() == 0:
            return parts.clone()
        local = self._local(group)
        result = (
            self._shared().all_to_all(rows, local)
            if local is not None
            else self._gloo().all_to_all(rows, group)
        )
        return result.view(parts.shape)

    def permute(self, tensor: torch.Tensor, pairs: Sequence[Sequence[int]]) -> torch.Tensor:
        """What the source of a (source, target) pair sent to this rank; zeros when none did.

        Only the ranks that the pairs name take part.
        """
        me = self._identity.rank
        members = sorted({int(rank) for pair in pairs for rank in pair})
        sources = [int(source) for source, target in pairs if target == me]
        if len(sources) > 1:
            raise ValueError(f"rank {me} is the target of several pairs: {[list(pair) for pair in pairs]}")
        if me not in members:
            return torch.zeros_like(tensor)
        flat = tensor.contiguous().reshape(-1)
        if len(members) == 1 or flat.numel() == 0:
            return flat.clone().view(tensor.shape)
        local = self._local(members)
        if local is not None:
            source = sources[0] - self._identity.local_ranks.start if sources else None
            result = self._shared().permute(flat, source, local)
        else:
            rows = self._gloo().all_gather(flat, members)
            result = rows[members.index(sources[0])] if sources else torch.zeros_like(flat)
        return result.view(tensor.shape)

    def _local(self, group: Sequence[int]) -> list[int] | None:
        """The group as local indices, or None when it spans hosts."""
        ranks = self._identity.local_ranks
        if all(rank in ranks for rank in group):
            return [rank - ranks.start for rank in group]
        return None

    def _shared(self) -> WithinHost:
        if self._within is None:
            me = self._identity
            attached = regions.attach(
                region_name(me), me.local_rank, me.local_world_size, self._shared_memory_bytes
            )
            self._within = WithinHost(attached, Arrival(attached, self._timeout_s))
        return self._within

    def _gloo(self) -> AcrossHosts:
        if self._across is None:
            if "MASTER_ADDR" not in os.environ:
                raise NeuronSimError("collectives between hosts need torchrun: MASTER_ADDR is not set")
            self._across = AcrossHosts(self._identity.rank, self._timeout_s)
        return self._across


def region_name(identity: Identity) -> str:
    """A name that all workers of this launch on this host derive alike, and no other launch does."""
    parts = (
        launch_name(),
        os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"),
        str(identity.rank // identity.local_world_size),
    )
    return "-".join(parts)


def launch_name() -> str:
    """What all workers of one launch share, and no other launch on this host does."""
    # Any torchrun tells all its workers the same address; `xmp.spawn` starts them from one parent.
    variables = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    text = "|".join(os.environ.get(name, "") for name in variables)
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        text += f"|{os.getppid()}"
    # What a script of ours starts in turn inherits the variable: alone it would not do.
    return os.environ.get(LAUNCH_VARIABLE, "") + "." + hashlib.sha256(text.encode()).hexdigest()[:16]
