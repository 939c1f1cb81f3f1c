"""Two hosts with two cores each: who is there, and are the gradients equal on all?"""

import json
import os

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr

dist.init_process_group("xla")
device = torch_xla.device()
rank, world = xr.global_ordinal(), xr.world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(100 + rank)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 16).to(device)).square().mean().backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
gradients = torch.cat([parameter.grad.cpu().flatten() for parameter in model.parameters()])
gathered = xm.mesh_reduce("gradients", gradients, lambda parts: torch.stack(parts))
in_halves = xm.all_reduce(
    xm.REDUCE_SUM, torch.tensor([float(rank)], device=device), groups=[[0, 2], [1, 3]]
).item()
everyone = xm.all_gather(torch.tensor([rank], device=device)).cpu().tolist()
print(
    "SAW "
    + json.dumps(
        {
            "rank": rank,
            "world": world,
            "local": xr.local_ordinal(),
            "hosts": os.environ["SM_HOSTS"],
            "host": os.environ["SM_CURRENT_HOST"],
            "equal": bool((gathered == gathered[0]).all()),
            "norm": gathered[0].norm().item(),
            "halves": in_halves,
            "everyone": everyone,
        }
    ),
    flush=True,
)
