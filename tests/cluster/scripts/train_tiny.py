"""Data parallel, with gradient accumulation: each rank prints sums of its gradients and parameters."""

import argparse
import time

import torch
import torch.distributed as dist
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from utilities.reporting import Metric, post_metrics

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--grad_accum", type=int)
parser.add_argument("--metrics_file")
flags = parser.parse_args()

dist.init_process_group("xla")
device, rank, world = xm.xla_device(), dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
data = torch.Generator().manual_seed(rank)
began = time.time()
for step in range(flags.steps):
    for _ in range(flags.grad_accum):
        batch = torch.randn(8, 16, generator=data).to(device)
        (model(batch).square().mean() / flags.grad_accum).backward()
        xm.mark_step()
    xm.reduce_gradients(optimizer)
    gradients = sum(parameter.grad.abs().sum() for parameter in model.parameters())
    optimizer.step()
    optimizer.zero_grad()
    parameters = sum(parameter.abs().sum() for parameter in model.parameters())
    xm.mark_step()
    print(
        f"rank {rank} of {world} step {step} gradients {gradients.item():.9e} parameters {parameters.item():.9e}",
        flush=True,
    )
if rank == 0:
    post_metrics(
        [
            Metric(
                "Throughput",
                flags.steps * flags.grad_accum * 8 * world / (time.time() - began),
                units="seq/s",
            )
        ],
        parameters={"World size": world},
    )
