"""A policy whose distribution looks at the values of its arguments on the host, unless it is told not to."""

import sys

import torch
import torch_xla
import torch_xla.distributed.parallel_loader as pl

device = torch_xla.device()
model = torch.nn.Linear(16, 4).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checks = False if sys.argv[1] == "told" else None
for batch in pl.MpDeviceLoader(torch.utils.data.DataLoader(torch.randn(32, 16), batch_size=4), device):
    optimizer.zero_grad()
    logits = model(batch)
    drawn = torch.distributions.Categorical(logits=logits, validate_args=checks)  # line: model
    drawn.entropy().mean().backward()
    optimizer.step()
