"""Trains on one tensor, without a loader: all of it on each core, or a part on each."""

import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr

device = torch_xla.device()
torch.manual_seed(xr.global_ordinal() if sys.argv[1] == "unseeded" else 0)
model = torch.nn.Linear(8, 4).to(device)
data = torch.randn(16, 8)
if sys.argv[1] == "shared":
    data = data[xr.global_ordinal() :: xr.world_size()]
data = data.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    model(data).square().mean().backward()  # line: backward
    if sys.argv[1] == "by_hand":
        xm.all_reduce(
            xm.REDUCE_SUM, [weight.grad for weight in model.parameters()], scale=1 / xr.world_size()
        )
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
    else:
        xm.optimizer_step(optimizer)  # line: step
    torch_xla.sync()
