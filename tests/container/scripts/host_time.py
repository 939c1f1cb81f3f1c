"""Eight steps each: as they are, with 50 ms of Python in them, with 50 ms of sleep, waiting for the other core,
and with 50 ms of Python in the backward pass.

The batch size says which kind a step is.
"""

import time

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend

dist.init_process_group("xla")
device = torch_xla.device()
model = torch.nn.Linear(32, 16).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)


def work():
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass


def late():
    if dist.get_rank() == 1:
        time.sleep(0.05)


class BusyBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, loss):
        return loss * 1

    @staticmethod
    def backward(context, gradient):
        work()
        return gradient


KINDS = (
    (4, lambda: None),
    (5, work),
    (6, lambda: time.sleep(0.05)),
    (7, late),
    (8, lambda: None),
)
for size, meanwhile in KINDS:
    data = torch.utils.data.TensorDataset(torch.randn(8 * size, 32))
    for (batch,) in pl.MpDeviceLoader(torch.utils.data.DataLoader(data, batch_size=size), device):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        if size == 8:
            loss = BusyBackward.apply(loss)
        loss.backward()
        meanwhile()
        xm.optimizer_step(optimizer)
        if size == 6:
            torch_xla.sync()
            loss.item()
