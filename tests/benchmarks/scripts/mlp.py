"""An MLP on every core, as the Neuron tutorial's MNIST MLP; each worker reports its memory at the end."""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr

STEPS, BATCH = 20, 32


def private_mib():
    """Memory that only this process has."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


dist.init_process_group("xla")
device = torch_xla.device()
rank, world = xr.global_ordinal(), xr.world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 120),
    torch.nn.ReLU(),
    torch.nn.Linear(120, 84),
    torch.nn.ReLU(),
    torch.nn.Linear(84, 10),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(
    torch.randn(STEPS * BATCH * world, 784), torch.randint(0, 10, (STEPS * BATCH * world,))
)
sampler = torch.utils.data.DistributedSampler(data, num_replicas=world, rank=rank)
loader = torch.utils.data.DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)
for images, labels in pl.MpDeviceLoader(loader, device):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    xm.optimizer_step(optimizer)
report = {
    "private_mib": private_mib(),
    "parameters": sum(parameter.double().sum().item() for parameter in model.parameters()),
}
Path(os.environ["BENCHMARK_OUTPUT"], f"rank-{rank}.json").write_text(json.dumps(report))
xm.rendezvous("done")
