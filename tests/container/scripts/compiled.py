"""A few training steps of a small network: the graphs of a job. Its loss is printed as `loss=`."""

import os

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend

dist.init_process_group("xla")
device = torch_xla.device()
torch.manual_seed(0)
model = torch.nn.Linear(16, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 2 if os.environ.get("NEURON_EXTRACT_GRAPHS_ONLY") else 4
for _ in range(steps):
    optimizer.zero_grad()
    loss = model(torch.ones(8, 16, device=device)).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
print(f"loss={loss.item():.6f} steps={steps}")
