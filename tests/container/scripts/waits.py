"""Steps behind which the script waits for the device, as HOW says."""

import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm

how = sys.argv[1]
device = torch_xla.device()
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(8):
    model(torch.ones(8, 4, device=device)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if how == "sync":
        torch_xla.sync(wait=True)  # line: sync
    else:
        torch_xla.sync()
    if how == "ops" or (how == "seldom" and step % 4 == 3):
        xm.wait_device_ops()  # line: ops
    if how == "closure":
        xm.add_step_closure(xm.wait_device_ops)
