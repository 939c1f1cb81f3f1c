"""Loops of several shapes over data whose size a short rehearsal must find by itself: SHAPE says which."""

import os
import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

dist.init_process_group("xla")
device = torch_xla.device()
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
SHAPE = sys.argv[1]
STEPS = {"max_steps": 200}


class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(1000):
            yield (torch.randn(4),)


def sampled(samples, batch, drop_last=False):
    data = TensorDataset(torch.randn(samples, 4))
    return DataLoader(data, batch, sampler=DistributedSampler(data, drop_last=drop_last), drop_last=drop_last)


def train(batch):
    loss = model(batch).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    optimizer.zero_grad()


def epochs(loader, number, evaluation=None):
    for _ in range(number):
        for (batch,) in pl.MpDeviceLoader(loader, device):
            train(batch)
        if evaluation is not None:
            with torch.no_grad():
                for (batch,) in pl.MpDeviceLoader(evaluation, device):
                    model(batch).sum()
                    xm.mark_step()
    print("the end")


if SHAPE == "epochs":
    whole = TensorDataset(torch.randn(50, 4))
    epochs(sampled(8000, 8, drop_last=True), 3, DataLoader(whole, 10))
elif SHAPE == "plain":
    for (batch,) in sampled(1001, 8):
        train(batch.to(device))
        xm.mark_step()
elif SHAPE == "stream":
    epochs(DataLoader(Stream(), 8), 1)
elif SHAPE == "break":
    step, limit = 0, STEPS["max_steps"]
    for _epoch in range(10):
        for (batch,) in pl.MpDeviceLoader(sampled(1600, 8), device):
            train(batch)
            step += 1
            if step >= limit:
                break
        if step >= limit:
            break
elif SHAPE == "while":
    step = 0
    while step < 20:
        for (batch,) in pl.MpDeviceLoader(sampled(1600, 8), device):
            train(batch)
            step += 1
            if step == 20:
                break
elif SHAPE == "next":
    batches = iter(pl.MpDeviceLoader(sampled(100000, 8), device))
    for _step in range(3000):
        train(next(batches)[0])
elif SHAPE == "made":
    for _step in range(3000):
        train(torch.randn(8, 4).to(device))
        xm.mark_step()
elif SHAPE == "accumulate":
    for number, (batch,) in enumerate(pl.MpDeviceLoader(sampled(8000, 8), device), 1):
        model(batch).square().mean().backward()
        if number % 10 == 0:
            xm.optimizer_step(optimizer)
            optimizer.zero_grad()
elif SHAPE == "list":
    for batch in pl.MpDeviceLoader([torch.randn(8, 4) for _ in range(60)], device):
        train(batch)
