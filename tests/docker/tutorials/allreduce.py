"""Sum a tensor over all cores, again and again, and compare with what the sum should be."""

import os

import torch
import torch.distributed as dist
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # noqa: F401 - registers the backend
import torch_xla.runtime as xr

STEPS = 100


def main():
    dist.init_process_group("xla", init_method="xla://")
    device = "xla"
    world, rank = xr.world_size(), xr.global_ordinal()
    for step in range(STEPS):
        ones = torch.full((4, 8), step + rank, dtype=torch.float32).to(device)
        xm.mark_step()
        result = xm.all_reduce(xm.REDUCE_SUM, ones)
        xm.mark_step()
        wanted = step * world + world * (world - 1) / 2
        assert (result.cpu() == wanted).all(), f"step {step}: {result} is not {wanted}"
    in_place = [torch.ones(3, device=device), torch.ones(2, device=device, dtype=torch.bfloat16)]
    xm.all_reduce("sum", in_place, scale=1.0 / world)
    xm.mark_step()
    assert all((tensor.cpu() == 1).all() for tensor in in_place)
    xm.rendezvous("done")
    print(
        f"rank {rank} of {world}: {STEPS} sums right, cores {os.environ['NEURON_RT_VISIBLE_CORES']}",
        flush=True,
    )


if __name__ == "__main__":
    main()
