"""Two steps of a model of which a rank's optimizer has only a part.

parts.py frozen: 64 x 64 weights are frozen, 8 x 64 trained, and an average of all is kept beside them.
parts.py shards: 30 x 65 weights are sharded over the cores (FSDP).
"""

import copy
import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel

dist.init_process_group("xla")
device = torch_xla.device()
if sys.argv[1] == "frozen":
    base = torch.nn.Linear(64, 64, bias=False).requires_grad_(False)
    model = torch.nn.Sequential(base, torch.nn.Linear(64, 8, bias=False)).to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    inputs = 64
else:
    inputs = 65
    model = XlaFullyShardedDataParallel(torch.nn.Linear(inputs, 30, bias=False).to(device))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, inputs, device=device)).square().mean().backward()
    if sys.argv[1] == "frozen":
        xm.reduce_gradients(optimizer)
    optimizer.step()
    torch_xla.sync()
