"""The object of a worker through which all its collectives go."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence

import torch

from neuron_sim.errors import MismatchError, NeuronSimError, NotSimulatedError
from neuron_sim.interconnect import across_hosts, stack
from neuron_sim.interconnect import region as regions
from neuron_sim.interconnect.across_hosts import AcrossHosts
from neuron_sim.interconnect.arrival import Arrival
from neuron_sim.interconnect.long_wait import Patience
from neuron_sim.interconnect.mail import Mail
from neuron_sim.interconnect.peers import ADVICE, Peers, script_ended
from neuron_sim.interconnect.peers import what as description
from neuron_sim.interconnect.reduction import operation
from neuron_sim.interconnect.within_host import WithinHost
from neuron_sim.settings import Identity

LAUNCH_VARIABLE = "NEURON_SIM_LAUNCH"
"""Set by our torchrun to a new name, by which it removes what workers that died early have left."""


class Communicator:
    """Collectives over global ranks.

    Inside one host they go through shared memory. A group that spans hosts is
    served inside first where that saves traffic (all_reduce), else by gloo.
    Tensors are on the CPU; every method blocks until the group has met.
    """

    def __init__(
        self,
        identity: Identity,
        shared_memory_bytes: int,
        timeout_s: float,
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        """Nothing is opened before the first collective. ``patience``: after how long a wait is reported."""
        self._identity = identity
        self._shared_memory_bytes = shared_memory_bytes
        self._timeout_s = timeout_s
        self._patience = patience
        self._within: WithinHost | None = None
        self._leave_is_due = False
        self._across: AcrossHosts | None = None
        self._announced: tuple[list[int], str] | None = None
        self._remark = ""

    def join(self) -> None:
        """Let the other workers of this host notice when this one ends. The caller must also call `leave`."""
        self._leave_is_due = True
        if self._identity.local_world_size > 1:
            self._shared()

    def remark(self, text: str) -> None:
        """Set what other ranks report if they miss this one: ``its DataLoader raised KeyError: 'img'``."""
        self._remark = text
        if self._within is not None:
            self._within.region.remark(text)

    def leave(self, *, failed: bool = False) -> None:
        """Take part in no further collective: ranks that still wait for this one get an error.

        Blocks while others may still receive what this rank has sent, unless it has ``failed``.
        """
        if self._within is not None:
            self._within.region.leave(failed=failed)
            for text in () if failed else self._within.mail.linger():
                sys.stderr.write(f"neuron_sim: rank {self._identity.rank}: {text} was never received\n")
        if self._across is not None:
            self._across.close(script_ended(self._remark))
        elif self._identity.world_size > self._identity.local_world_size and "MASTER_ADDR" in os.environ:
            across_hosts.tell_ended(*_meeting_point(), {self._identity.rank: script_ended(self._remark)})

    @property
    def shared_memory_bytes(self) -> int:
        """Size of the memory that this host's workers share; 0 before its first use."""
        return self._within.region.size if self._within is not None else 0

    def group_of(self, groups: Sequence[Sequence[int]] | None) -> list[int]:
        """The sorted ranks of the group that this rank is in; all ranks when there are no groups.

        A group that is listed in another order is sorted too: since Neuron 2.19, NxD Core's pipelines take their part
        of what [[1, 0]] gathers by its place in the sorted group.

        Raises:
            ValueError: this rank is in no group, or a rank does not exist.
        """
        me, world = self._identity.rank, self._identity.world_size
        if not groups:
            return list(range(world))
        for group in groups:
            if me in group:
                members = sorted(int(rank) for rank in group)
                if len(set(members)) != len(members) or not all(0 <= rank < world for rank in members):
                    raise ValueError(f"group {members} is not a set of ranks of a world of {world}")
                return members
        raise ValueError(f"rank {me} is in none of the groups {[list(group) for group in groups]}")

    def announce(self, group: Sequence[int], what: str) -> None:
        """Describe what the next call is part of: that call then checks that all ranks of the group do the same.

        ``what`` is compared without the text after its last " at ", which is the place in the
        script. A collective that is not announced makes its own description.
        """
        self._announced = (list(group), what)

    def settle(self) -> None:
        """Compare what was announced, if no later call has compared it."""
        if self._announced is not None:
            self.agree(*self._announced)

    def agree(self, group: Sequence[int], what: str) -> None:
        """Check that all ranks of the group do the same.

        Raises:
            MismatchError: they do not; the message has each rank's description.
        """
        self._announced = None
        if len(group) == 1:
            return
        local = self._local(group)
        if local is not None:
            self._shared().agree(local, what)
            return
        with self._elsewhere(what):
            said = self._gloo().agree(group, what)
        if len({description(text) for text in said.values()}) > 1:
            lines = "\n".join(f"  rank {rank}: {text}" for rank, text in said.items())
            raise MismatchError(f"the ranks of this group called different collectives:\n{lines}\n{ADVICE}")

    def all_reduce(self, tensor: torch.Tensor, name: str, group: Sequence[int]) -> torch.Tensor:
        """The reduction over the group, the same bits on every rank. Same shape and dtype."""
        flat = tensor.contiguous().reshape(-1)
        result = torch.empty_like(flat)
        self._all_reduce(flat, result, name, group)
        return result.view(tensor.shape)

    def all_reduce_(self, tensor: torch.Tensor, name: str, group: Sequence[int]) -> torch.Tensor:
        """`all_reduce` in place. The tensor must be contiguous."""
        flat = tensor.view(-1)
        self._all_reduce(flat, flat, name, group)
        return tensor

    def _all_reduce(self, flat: torch.Tensor, result: torch.Tensor, name: str, group: Sequence[int]) -> None:
        name = operation(name)
        if self._is_trivial(flat, group):
            if result is not flat:
                result.copy_(flat)
            return
        local = self._local(group)
        if local is not None:
            text = self._text(group, f"all_reduce {name}", flat)
            self._shared().all_reduce(flat, result, name, local, text)
            return
        if result is not flat:
            result.copy_(flat)
        self.agree(group, self._text(group, f"all_reduce {name}", flat))
        self._all_reduce_across(result, name, group)

    def _all_reduce_across(self, flat: torch.Tensor, name: str, group: Sequence[int]) -> None:
        """Reduce inside each host, then between one leader of each host, then distribute inside each host."""
        per_host = self._identity.local_world_size
        first = self._identity.local_ranks.start
        inside = [rank - first for rank in group if rank in self._identity.local_ranks]
        leaders = list({rank // per_host: rank for rank in sorted(group, reverse=True)}.values())[::-1]
        leader = min(inside)
        text = f"all_reduce {name} between hosts"
        if len(inside) > 1:
            self._shared().all_reduce(flat, flat, name, inside, text)
        if self._identity.local_rank == leader:
            with self._elsewhere(text):
                self._gloo().all_reduce(flat, name, leaders)
        if len(inside) > 1:
            flat.copy_(self._shared().permute(flat, leader, inside, text))

    def reduce_scatter(self, parts: torch.Tensor, name: str, group: Sequence[int]) -> torch.Tensor:
        """``parts[i]`` reduced over the group; i is this rank's position in the group."""
        name = operation(name)
        rows = parts.contiguous().reshape(len(group), -1)
        if self._is_trivial(rows, group):
            return parts[list(group).index(self._identity.rank)].clone()
        with self._carrier(f"reduce_scatter {name}", rows, group) as (carrier, members, text):
            result = carrier.reduce_scatter(rows, name, members, text)
        return result.view(parts.shape[1:])

    def all_gather(self, tensor: torch.Tensor, group: Sequence[int]) -> torch.Tensor:
        """Every rank's tensor in the order of the group: shape (len(group), *tensor.shape)."""
        flat = tensor.contiguous().reshape(-1)
        shape = (len(group), *tensor.shape)
        if self._is_trivial(flat, group):
            return flat.clone().expand(len(group), -1).reshape(shape)
        with self._carrier("all_gather", flat, group) as (carrier, members, text):
            result = carrier.all_gather(flat, members, text)
        return result.view(shape)

    def all_to_all(self, parts: torch.Tensor, group: Sequence[int]) -> torch.Tensor:
        """``parts[j]`` goes to the group's rank j; the result's ``[j]`` came from it. Same shape."""
        rows = parts.contiguous().reshape(len(group), -1)
        if self._is_trivial(rows, group):
            return parts.clone()
        with self._carrier("all_to_all", rows, group) as (carrier, members, text):
            result = carrier.all_to_all(rows, members, text)
        return result.view(parts.shape)

    def permute(self, tensor: torch.Tensor, pairs: Sequence[Sequence[int]]) -> torch.Tensor:
        """The tensor that the source of a (source, target) pair sent to this rank; zeros if none did.

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
        if self._is_trivial(flat, members):
            return flat.clone().view(tensor.shape)
        with self._carrier("collective_permute", flat, members) as (carrier, numbers, text):
            source = numbers[members.index(sources[0])] if sources else None
            result = carrier.permute(flat, source, numbers, text)
        return result.view(tensor.shape)

    def send(self, tensor: torch.Tensor, channel: int, text: str) -> None:
        """Send a tensor to the rank that receives on the channel; only between ranks of one host.

        Raises:
            PeerLostError: too much is waiting already, and nobody is left to receive it.
            NotSimulatedError: this job has several hosts.
        """
        self._channels().send(tensor.contiguous(), channel, text)

    def receive(self, shape: Sequence[int], dtype: torch.dtype, channel: int, text: str) -> torch.Tensor:
        """The next tensor that another rank has sent on the channel; blocks until there is one.

        Raises:
            MismatchError: shape or dtype differ, or all ranks wait.
            PeerLostError: the sender has ended, or nobody has sent in time.
            NotSimulatedError: this job has several hosts.
        """
        return self._channels().receive(shape, dtype, channel, text)

    def _channels(self) -> Mail:
        if self._identity.world_size != self._identity.local_world_size:
            raise NotSimulatedError(
                "xm.send or xm.recv in a job of several instances",
                "Use dist.send and dist.recv, or xm.collective_permute with all pairs.",
            )
        if not self._leave_is_due:
            # Without our launcher nothing else calls `leave`, and what was sent would be lost with this process.
            self._leave_is_due = True
            atexit.register(self.leave)
        return self._shared().mail

    @contextlib.contextmanager
    def _carrier(
        self, what: str, flat: torch.Tensor, group: Sequence[int]
    ) -> Iterator[tuple[WithinHost | AcrossHosts, list[int], str]]:
        """The object that carries out a group's collective, the group in its numbering, and the description."""
        text, local = self._text(group, what, flat), self._local(group)
        if local is not None:
            yield self._shared(), local, text
            return
        # Between hosts the comparison is a step of its own.
        self.agree(group, text)
        with self._elsewhere(f"{what} between hosts"):
            yield self._gloo(), list(group), text

    def _is_trivial(self, flat: torch.Tensor, group: Sequence[int]) -> bool:
        """Whether there is nothing to exchange; what was announced is compared all the same."""
        if len(group) > 1 and flat.numel():
            return False
        self.settle()
        return True

    def _text(self, group: Sequence[int], what: str, tensor: torch.Tensor) -> str:
        """The description that all ranks compare before the operation; in shared memory, in its first meeting."""
        announced, self._announced = self._announced, None
        if announced is not None:
            if sorted(announced[0]) == sorted(group):
                return announced[1]
            self.agree(*announced)
        return f"{what} of {tensor.dtype}[{tensor.numel()}] in {list(group)}"

    @contextlib.contextmanager
    def _elsewhere(self, text: str) -> Iterator[None]:
        """Show the workers of this host, during the block, that this one is busy with other hosts."""
        if self._identity.local_world_size == 1:
            yield
            return
        shared = self._shared()
        shared.arrival.busy(text)
        yield
        shared.arrival.finish()

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
                region_name(me), _attempt(), me.local_rank, me.local_world_size, self._shared_memory_bytes
            )
            attached.stacks[attached.index] = 1 + stack.answer()
            peers = Peers(attached, me.local_ranks.start)
            arrival = Arrival(attached, peers, self._timeout_s, self._patience)
            self._within = WithinHost(attached, arrival, Mail(attached, arrival, peers))
        return self._within

    def _gloo(self) -> AcrossHosts:
        if self._across is None:
            if "MASTER_ADDR" not in os.environ:
                raise NeuronSimError("collectives between hosts need torchrun: MASTER_ADDR is not set")
            self._across = AcrossHosts(self._identity.rank, self._timeout_s, *_meeting_point())
        return self._across


def _meeting_point() -> tuple[str, int, int]:
    """Address and port of the store that torchrun's agent serves, and the number of this attempt."""
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), _attempt()


def _attempt() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def region_name(identity: Identity) -> str:
    """A name that all workers of this launch on this host derive alike, and that no other launch derives."""
    parts = (
        launch_name(),
        str(_attempt()),
        str(identity.rank // identity.local_world_size),
    )
    return "-".join(parts)


def launch_name() -> str:
    """A name that all workers of one launch share, and that no other launch on this host has."""
    # All workers get one address from torchrun, from Ray Train (whose workers each have another
    # TORCHELASTIC_RUN_ID), or from a shell around each worker; `xmp.spawn` starts them from one parent.
    address = [os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT")]
    text = "|".join(address if all(address) else [*address, str(os.getppid())])
    # The variable alone is not enough: processes that the script starts inherit it.
    return os.environ.get(LAUNCH_VARIABLE, "") + "." + hashlib.sha256(text.encode()).hexdigest()[:16]
