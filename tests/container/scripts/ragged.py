"""A smaller last batch: with layers of FSDP, whose collectives cut each step, or where nothing ends a step."""

import sys

import torch
import torch_xla
import torch_xla.distributed.parallel_loader as pl
from torch.utils.data import DataLoader, TensorDataset
from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel

how = sys.argv[1]
torch.manual_seed(0)
device = torch_xla.device()
data = DataLoader(TensorDataset(torch.randn(70, 8), torch.randint(0, 2, (70,))), 16)  # line: made
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3))).to(device)
if how == "sharded":
    model = XlaFullyShardedDataParallel(
        torch.nn.Sequential(*(XlaFullyShardedDataParallel(torch.nn.Linear(8, 8)) for _ in range(3)))
    )
    data = pl.MpDeviceLoader(data, device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _epoch in range(2):
    for features, labels in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        if how == "unended":
            print("loss", loss.item())
