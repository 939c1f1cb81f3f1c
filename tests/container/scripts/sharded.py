"""Two steps of AdamW over a layer of 64 x 32, its state sharded over the cores (ZeRO-1)."""

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer

dist.init_process_group("xla")
device = torch_xla.device()
model = torch.nn.Linear(64, 32, bias=False).to(device)
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, 64, device=device)).square().mean().backward()
    optimizer.step()
    torch_xla.sync()
