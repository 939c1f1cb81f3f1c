"""Gradients that are summed over the cores and then clipped: their norms become one tensor, of one dtype.

clipped.py VARIABLE: what shall make floats bf16, as AWS's older scripts set it
"""

import os
import sys

os.environ[sys.argv[1]] = "1"

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend

dist.init_process_group("xla")
device = torch_xla.device()
assert torch.tensor(1.001).to(device).item() == 1
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2)).to(
    device
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
tokens = torch.randint(0, 20, (4, 6)).to(device)
for _ in range(4):
    optimizer.zero_grad()
    loss = model(tokens).square().mean()
    loss.backward()
    xm.reduce_gradients(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    torch_xla.sync()
    print(f"loss={loss.item():.4f}", flush=True)
