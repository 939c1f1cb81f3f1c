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


# Without simulated cores (PJRT_DEVICE=CPU) torch_xla reduces nothing: gloo has to, as in any CPU job.
plain = os.environ.get("PJRT_DEVICE") == "CPU"
dist.init_process_group("gloo" if plain else "xla")
device = torch_xla.device()
rank = dist.get_rank() if plain else xr.global_ordinal()


def reduce_with_gloo(parameters):
    """Average the gradients, all in one collective."""
    gradients = [parameter.grad for parameter in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).cpu()
    dist.all_reduce(flat)
    parts = (flat / dist.get_world_size()).to(device).split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts):
        gradient.copy_(part.view_as(gradient))


torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(784, 120),
    torch.nn.ReLU(),
    torch.nn.Linear(120, 84),
    torch.nn.ReLU(),
    torch.nn.Linear(84, 10),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# Each rank makes its own shard: the whole set in every worker would be 61 MiB of the script's own in each.
torch.manual_seed(1 + rank)
shard = torch.utils.data.TensorDataset(
    torch.randn(STEPS * BATCH, 784), torch.randint(0, 10, (STEPS * BATCH,))
)
loader = torch.utils.data.DataLoader(shard, batch_size=BATCH, drop_last=True)
for images, labels in pl.MpDeviceLoader(loader, device):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    if plain:
        reduce_with_gloo(list(model.parameters()))
        optimizer.step()
    else:
        xm.optimizer_step(optimizer)
report = {
    "private_mib": private_mib(),
    "parameters": sum(parameter.double().sum().item() for parameter in model.parameters()),
}
Path(os.environ["BENCHMARK_OUTPUT"], f"rank-{rank}.json").write_text(json.dumps(report))
dist.barrier() if plain else xm.rendezvous("done")
