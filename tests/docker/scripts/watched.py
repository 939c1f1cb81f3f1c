"""Trains until somebody has seen it train, and writes a scalar of its own for TensorBoard."""

import os
import time

import torch
import torch_xla
from torch.utils.tensorboard import SummaryWriter

device = torch_xla.device()
model = torch.nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rank = int(os.environ["RANK"])
seen = os.path.join(os.environ["SM_CHANNEL_SIGNAL"], "seen")
if rank == 0:
    board = SummaryWriter("/opt/ml/output/tensorboard/script")
deadline = time.time() + 550
for step in range(10**6):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 64).to(device)).square().mean()
    loss.backward()
    optimizer.step()
    torch_xla.sync()
    if rank == 0:
        board.add_scalar("loss", loss.item(), step)
    if os.path.exists(seen) or time.time() > deadline:
        break
    time.sleep(0.05)
if rank == 0:
    board.close()
print("steps", step, flush=True)
