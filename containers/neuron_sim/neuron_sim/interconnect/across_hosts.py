"""Collectives of groups that span hosts, through gloo over the job's network."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from neuron_sim.errors import PeerLostError
from neuron_sim.interconnect import reduction
from neuron_sim.interconnect.peers import peer_lost

_REDUCE_OPS = {
    "sum": dist.ReduceOp.SUM,
    "mul": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "and": dist.ReduceOp.BAND,
    "or": dist.ReduceOp.BOR,
}

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5
_GOODBYE_S = 5.0
"""Time limit for telling others that a rank has ended: the host that serves the store may be gone too."""


class AcrossHosts:
    """Gloo groups of global ranks, made when first used. Uses torchrun's own store."""

    def __init__(self, rank: int, timeout_s: float, address: str, port: int, attempt: int) -> None:
        """Connect to the store that torchrun's agent serves. ``attempt``: how often workers were restarted."""
        self._rank = rank
        self._timeout = timedelta(seconds=timeout_s)
        self._store = _store(address, port, attempt, self._timeout)
        self._groups: dict[tuple[int, ...], dist.ProcessGroup] = {}

    def _group(self, ranks: Sequence[int]) -> dist.ProcessGroup:
        key = tuple(ranks)
        if key not in self._groups:
            store = dist.PrefixStore("-".join(map(str, key)), self._store)
            with self._connected():
                self._await_members(store, key)
            self._groups[key] = dist.ProcessGroupGloo(store, key.index(self._rank), len(key), self._timeout)
        return self._groups[key]

    def _await_members(self, store: dist.Store, ranks: Sequence[int]) -> None:
        """Return when all ranks of the group have come. Connecting to one that has ended would wait until the time-out.

        Raises:
            PeerLostError: a rank has ended, or has not come in time.
        """
        store.set(f"here/{self._rank}", "")
        come = store.add("come", 1)
        pause, deadline = _FIRST_PAUSE_S, time.monotonic() + self._timeout.total_seconds()
        while come < len(ranks):
            if self._store.add("ended", 0):
                ended = [rank for rank in ranks if self._store.check([f"left/{rank}"])]
                if ended:
                    how = self._store.get(f"left/{ended[0]}").decode()
                    raise peer_lost(ended[0], how, f"rank {self._rank} waited to connect to it")
            if time.monotonic() > deadline:
                late = [rank for rank in ranks if not store.check([f"here/{rank}"])]
                raise PeerLostError(
                    f"rank {', '.join(map(str, late))} did not come within {self._timeout.total_seconds():.0f} s; "
                    f"rank {self._rank} waited to connect to it"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            come = store.add("come", 0)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except dist.DistError as error:
            raise PeerLostError(
                f"rank {self._rank} waited for ranks of other hosts, but the first host, where they all meet, "
                f"has ended: {error}"
            ) from error

    def close(self, how: str) -> None:
        """Close all connections: a rank that still waits for this one gets an error that says ``how`` it ended."""
        with contextlib.suppress(dist.DistError):
            _tell(self._store, {self._rank: how})
        self._groups.clear()

    def agree(self, ranks: Sequence[int], what: str) -> dict[int, str]:
        """Exchange descriptions of what each rank of the group is about to do."""
        raw = torch.zeros(512, dtype=torch.uint8)
        data = what.encode()[:511]
        raw[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        rows = self.all_gather(raw, ranks)
        return {
            rank: bytes(row.tolist()).rstrip(b"\0").decode(errors="replace")
            for rank, row in zip(ranks, rows, strict=True)
        }

    def all_reduce(self, flat: torch.Tensor, name: str, ranks: Sequence[int]) -> None:
        """Reduce in place, half precision in fp32."""
        wide = flat
        if flat.dtype in (torch.bfloat16, torch.float16):
            wide = flat.float()
        elif flat.dtype == torch.bool:
            # gloo has no booleans: gather them, as they are small in practice.
            flat.copy_(reduction.reduce(name, self.all_gather(flat, ranks)))
            return
        options = dist.AllreduceOptions()
        options.reduceOp = _REDUCE_OPS[name]
        self._group(ranks).allreduce([wide], options).wait()
        if wide is not flat:
            flat.copy_(wide)

    def reduce_scatter(
        self, rows: torch.Tensor, name: str, ranks: Sequence[int], _: str = ""
    ) -> torch.Tensor:
        """This rank's row of the reduction. Shape (len(ranks), n) to (n,)."""
        return reduction.reduce(name, self.all_to_all(rows, ranks).unbind(0))

    def all_gather(self, flat: torch.Tensor, ranks: Sequence[int], _: str = "") -> torch.Tensor:
        """Every rank's tensor in the order of ``ranks``: shape (len(ranks), numel)."""
        raw = flat.view(torch.uint8)
        rows = [torch.empty_like(raw) for _ in ranks]
        self._group(ranks).allgather([rows], [raw]).wait()
        return torch.stack(rows).view(flat.dtype)

    def all_to_all(self, rows: torch.Tensor, ranks: Sequence[int], _: str = "") -> torch.Tensor:
        """Row j goes to rank j of the group; shape (len(ranks), n)."""
        raw = rows.contiguous().view(torch.uint8)
        result = torch.empty_like(raw)
        self._group(ranks).alltoall_base(result, raw, [], [], dist.AllToAllOptions()).wait()
        return result.view(rows.dtype)

    def permute(
        self, flat: torch.Tensor, source: int | None, ranks: Sequence[int], _: str = ""
    ) -> torch.Tensor:
        """The tensor of the rank ``source``; zeros without one. All ranks take part."""
        rows = self.all_gather(flat, ranks)
        return torch.zeros_like(flat) if source is None else rows[list(ranks).index(source)]


def tell_ended(address: str, port: int, attempt: int, how: Mapping[int, str]) -> None:
    """Let the ranks of other hosts know which ranks have ended, and how. If the store is gone, nothing happens.

    For callers without a connection to the store. Blocks for a few seconds at most.
    """
    with contextlib.suppress(dist.DistError):
        _tell(_store(address, port, attempt, timedelta(seconds=_GOODBYE_S)), how)


def _store(address: str, port: int, attempt: int, timeout: timedelta) -> dist.Store:
    store = dist.TCPStore(address, port, is_master=False, timeout=timeout)
    return dist.PrefixStore(f"neuron_sim/{attempt}", store)


def _tell(store: dist.Store, how: Mapping[int, str]) -> None:
    for rank, words in how.items():
        store.set(f"left/{rank}", words)
    # After the names, so that a rank that sees this count also finds the names.
    store.add("ended", len(how))
