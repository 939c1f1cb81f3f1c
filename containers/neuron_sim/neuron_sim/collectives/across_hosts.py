"""Collectives of groups that span hosts, through gloo over the job's network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from neuron_sim.collectives import reduction

_REDUCE_OPS = {
    "sum": dist.ReduceOp.SUM,
    "mul": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "and": dist.ReduceOp.BAND,
    "or": dist.ReduceOp.BOR,
}


class AcrossHosts:
    """Gloo groups of global ranks, made when first used. Uses torchrun's own store."""

    def __init__(self, rank: int, timeout_s: float) -> None:
        """Connect to the store that torchrun's agent serves at MASTER_ADDR:MASTER_PORT."""
        self._rank = rank
        self._timeout = timedelta(seconds=timeout_s)
        store = dist.TCPStore(
            os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False, timeout=self._timeout
        )
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = dist.PrefixStore(f"neuron_sim/{attempt}", store)
        self._groups: dict[tuple[int, ...], dist.ProcessGroup] = {}

    def _group(self, ranks: Sequence[int]) -> dist.ProcessGroup:
        key = tuple(ranks)
        if key not in self._groups:
            store = dist.PrefixStore("-".join(map(str, key)), self._store)
            self._groups[key] = dist.ProcessGroupGloo(store, key.index(self._rank), len(key), self._timeout)
        return self._groups[key]

    def close(self) -> None:
        """End all connections: who still waits for this rank gets an error instead of waiting on."""
        self._groups.clear()

    def agree(self, ranks: Sequence[int], what: str) -> dict[int, str]:
        """What each rank of the group says it is about to do."""
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

    def all_gather(self, flat: torch.Tensor, ranks: Sequence[int]) -> torch.Tensor:
        """Every rank's tensor in the order of ``ranks``: shape (len(ranks), numel)."""
        raw = flat.view(torch.uint8)
        rows = [torch.empty_like(raw) for _ in ranks]
        self._group(ranks).allgather([rows], [raw]).wait()
        return torch.stack(rows).view(flat.dtype)

    def all_to_all(self, rows: torch.Tensor, ranks: Sequence[int]) -> torch.Tensor:
        """Row j goes to rank j of the group; shape (len(ranks), n)."""
        raw = rows.contiguous().view(torch.uint8)
        result = torch.empty_like(raw)
        self._group(ranks).alltoall_base(result, raw, [], [], dist.AllToAllOptions()).wait()
        return result.view(rows.dtype)
