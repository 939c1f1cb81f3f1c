"""Starts a process a core by itself, HOW says how. With `-fails`, the second core raises before a second collective;
with `-numbered`, xmp.spawn is told how many to start.

A second argument: twice, one after the other.
"""

import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr
from torch.utils.data import DataLoader, TensorDataset


def _mp_fn(index, fails):
    assert sys.stdout.line_buffering and not sys.stdout.write_through  # a line is not logged in pieces
    device = torch_xla.device()
    for (batch,) in DataLoader(TensorDataset(torch.ones(4, 2)), 1):
        read = batch.to(device).sum().item()
        xm.mark_step()
    assert read == 2
    total = xm.all_reduce(xm.REDUCE_SUM, torch.tensor(float(index + 1), device=device))
    sys.stdout.write(f"core {xr.global_ordinal()} of {xr.world_size()}: sum {total.item()}\n")
    sys.stdout.flush()
    if fails and index == 1:
        raise ValueError("the reason of rank 1")
    xm.all_reduce(xm.REDUCE_SUM, total)


if __name__ == "__main__":
    how, _, more = sys.argv[1].partition("-")
    fails = more == "fails"
    for _ in sys.argv[1:]:
        if how == "launch":
            torch_xla.launch(_mp_fn, args=(fails,), start_method="fork")
        else:
            nprocs = 8 if more == "numbered" else None
            xmp.spawn(_mp_fn, args=(fails,), nprocs=nprocs, start_method=how)
