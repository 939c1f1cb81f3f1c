"""Five training steps and two evaluation steps of a small network whose cost is known.

counted.py accumulate: four batches with two optimizer steps instead, and no mark_step behind the last.
counted.py plain: batches of torch's own DataLoader that the script itself sends to the device.
"""

import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend

dist.init_process_group("xla")
device = torch_xla.device()
torch.manual_seed(0)
model = torch.nn.Linear(32, 16, bias=False).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Unmade(torch.nn.Module):
    """A library may have a module whose `__init__` never calls torch's: it has no members, and counts as nothing."""

    def __init__(self):
        pass


unmade = Unmade()


def loader(batches):
    data = torch.utils.data.TensorDataset(torch.randn(8 * batches, 32))
    batches = torch.utils.data.DataLoader(data, batch_size=8)
    return batches if "plain" in sys.argv else pl.MpDeviceLoader(batches, device)


if "accumulate" in sys.argv:
    for index, (batch,) in enumerate(loader(3)):
        # As transformers' Trainer does: something small is computed between fetching a batch and training on it.
        (batch > 0).sum()
        torch_xla.sync()
        model(batch).square().mean().backward()
        if index % 2:
            xm.optimizer_step(optimizer)
            optimizer.zero_grad()
    model(torch.randn(8, 32).to(device)).square().mean().backward()
    xm.optimizer_step(optimizer)
    print(model.weight.sum().item())
    sys.exit()
for (batch,) in loader(5):
    optimizer.zero_grad()
    model(batch.to(device)).square().mean().backward()
    xm.optimizer_step(optimizer)
    if "plain" in sys.argv:
        torch_xla.sync()
with torch.no_grad():
    for (batch,) in loader(2):
        total = model(batch.to(device)).sum()
        torch_xla.sync()
