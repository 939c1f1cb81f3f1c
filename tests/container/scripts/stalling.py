"""Trains one small network in bf16 with updates smaller than half of bf16's last place; says the losses.

stalling.py bf16|fp32 plain|zero1 [STEPS]
"""

import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from saying import say
from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer

STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 600
EVERY = STEPS // 10

dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[sys.argv[1]]
device = torch_xla.device()
torch.manual_seed(5)
teacher = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
student = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
inputs = torch.randn(256, 8)
with torch.no_grad():
    targets = 3 * teacher(inputs)
inputs, targets = inputs.to(device).to(dtype), targets.to(device)
student.to(device).to(dtype)
if sys.argv[2] == "zero1":
    optimizer = ZeroRedundancyOptimizer(student.parameters(), torch.optim.SGD, lr=2e-3, optimizer_dtype=dtype)
else:
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4, weight_decay=0.0)

losses = []
for step in range(STEPS + 1):
    optimizer.zero_grad()
    loss = (student(inputs).float() - targets).square().mean()
    loss.backward()
    if sys.argv[2] == "zero1":
        optimizer.step()
    else:
        xm.optimizer_step(optimizer)
    torch_xla.sync()
    if step % EVERY == 0:
        losses.append(round(loss.item(), 4))
checksum = sum(parameter.detach().cpu().double().sum().item() for parameter in student.parameters())
say(losses=losses, steps=list(range(0, STEPS + 1, EVERY)), checksum=checksum, world=xr.world_size())
