"""Makes its batches itself, and computes gradients several times in a step, but of one batch, in three ways."""

import torch
import torch_xla
from torch_xla.utils.checkpoint import checkpoint

device = torch_xla.device()
layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3)).to(device)
optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
for way in ["checkpointed"] * 3 + ["cut up"] * 3 + ["several losses"] * 3:
    given = torch.randn(8, 4).to(device)
    if way == "checkpointed":
        made = given.requires_grad_()
        for layer in layers:
            made = checkpoint(layer, made)
        (made - torch.randn(8, 4).to(device)).square().mean().backward()
    elif way == "cut up":
        for part in given.split(2):
            layers[0](part).square().mean().backward()
    else:
        for layer in layers:
            layer(given).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch_xla.sync()
