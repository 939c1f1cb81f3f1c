"""A worker as Ray Train has it: its function runs in a thread, and then the process is killed."""

import os
import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.runtime as xr
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, sys.argv[1])
from ray.train.v2._internal.execution.worker_group.thread_runner import ThreadRunner  # noqa: E402


def train() -> None:
    """Exchanges gradients; the last batch is smaller."""
    device = torch_xla.device()
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = torch.arange(40.0).reshape(10, 4) + xr.global_ordinal()
    for (batch,) in pl.MpDeviceLoader(DataLoader(TensorDataset(first), batch_size=4), device):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        xm.optimizer_step(optimizer)
        if "fails" in sys.argv:
            raise ValueError("as the script has it")
    total = xm.all_reduce(xm.REDUCE_SUM, torch.tensor([xr.global_ordinal() + 1.0], device=device))
    print("sum", total.item(), "on core", os.environ["NEURON_RT_VISIBLE_CORES"], flush=True)


runner = ThreadRunner()
runner.run(train)
runner.thread.join()
sys.stdout.flush()
os._exit(runner.failed)
