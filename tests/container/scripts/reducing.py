"""A warm loop, and results of growing length that all ranks exchange, as at the end of epochs."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm

device = torch_xla.device()
weight = torch.ones(4, 4, device=device)
for epoch in range(6):
    for _ in range(3):
        weight = weight @ weight / 4
        torch_xla.sync()
    xm.mesh_reduce("results", list(range(100 * epoch)), len)
