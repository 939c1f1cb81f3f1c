"""Loops of several shapes over data whose size a short rehearsal must find by itself: SHAPE says which."""

import itertools
import multiprocessing
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
CORES = 2
"""For which the data are split: where one core is as good as two, only the first is started."""
STEPS = {"max_steps": 200}


class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(1000):
            yield (torch.randn(4),)


def sampled(samples, batch, drop_last=False, **how):
    data = TensorDataset(torch.randn(samples, 4))
    sampler = DistributedSampler(data, CORES, dist.get_rank(), drop_last=drop_last)
    return DataLoader(data, batch, sampler=sampler, drop_last=drop_last, **how)


def train(batch):
    loss = model(batch).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    optimizer.zero_grad()


def fill(queue):
    while True:
        queue.put([[1.0] * 4] * 8)


def evaluate(loader):
    with torch.no_grad():
        for number, (batch,) in enumerate(pl.MpDeviceLoader(loader, device)):
            if number >= 10:
                break
            model(batch).sum()
            xm.mark_step()


def either(loader, trains):
    for (batch,) in pl.MpDeviceLoader(loader, device):
        if trains:
            train(batch)
        else:
            model(batch).sum()


def forever(loader):
    while True:
        for (batch,) in loader:
            yield batch


def once(loader):
    for (batch,) in loader:
        yield batch


def handed_on(loader):
    yield from loader


def pairs(loader):
    waiting = []
    for (batch,) in loader:
        waiting.append(batch)
        if len(waiting) == 2:
            yield waiting
            waiting = []


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
elif SHAPE == "differentiated":
    weights, loader = list(model.parameters()), sampled(8000, 8, drop_last=True)
    for _epoch in range(3):
        for (batch,) in pl.MpDeviceLoader(loader, device):
            for weight, gradient in zip(weights, torch.autograd.grad(model(batch).square().mean(), weights)):
                weight.grad = gradient
            xm.optimizer_step(optimizer)
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
elif SHAPE == "next_of_generator":
    with torch.no_grad():
        batches = once(pl.MpDeviceLoader(sampled(800, 8), device))
        for _step in range(5):
            model(next(batches)).sum()
    batches = once(pl.MpDeviceLoader(sampled(100000, 8), device))
    for _step in range(3000):
        train(next(batches))
elif SHAPE == "next_and_loop":
    batches = iter(pl.MpDeviceLoader(sampled(8000, 8), device))
    train(next(batches)[0])
    for (batch,) in batches:
        train(batch)
elif SHAPE == "next_again":
    loader = sampled(48, 8)
    batches = iter(loader)
    for _step in range(500):
        for _part in range(2):
            batch = next(batches, None)
            if batch is None:
                batches = iter(loader)
                batch = next(batches)
            model(batch[0].to(device)).square().mean().backward()
        xm.reduce_gradients(optimizer)
        xm.mark_step()
        optimizer.step()
        optimizer.zero_grad()
        xm.mark_step()
elif SHAPE == "made_by_a_process":
    queue = multiprocessing.Queue(2)
    process = multiprocessing.Process(target=fill, args=(queue,))
    process.start()
    for _step in range(3000):
        train(torch.tensor(queue.get()).to(device))
        xm.mark_step()
    process.kill()
elif SHAPE == "made":
    for _step in range(3000):
        train(torch.randn(8, 4).to(device))
        xm.mark_step()
elif SHAPE == "made_accumulate":
    for number in range(1, 3000):
        model(torch.randn(8, 4).to(device)).square().mean().backward()
        if number % 10 == 0:
            xm.optimizer_step(optimizer)
            optimizer.zero_grad()
        xm.mark_step()
elif SHAPE == "made_on_device":
    step, features = 0, torch.randn(8, 4, device=device)
    while True:
        model(features).square().mean().backward()
        xm.mark_step()
        xm.optimizer_step(optimizer)
        xm.mark_step()
        optimizer.zero_grad()
        if step >= 400:
            break
        step += 1
elif SHAPE == "made_in_two_loops":
    for _epoch in range(20):
        for first in range(0, 90, 8):
            for _part in range(2):
                model(torch.randn(8, 4, device=device)).square().mean().backward()
            xm.optimizer_step(optimizer)
            optimizer.zero_grad()
            if first % 16:
                xm.mark_step()
elif SHAPE == "made_and_evaluated":
    for step in range(600):
        train(torch.randn(8, 4).to(device))
        xm.mark_step()
        if step % 3 == 2:
            evaluate(sampled(40, 8))
elif SHAPE == "made_while":
    while not (loss := model(torch.randn(8, 4, device=device)).square().mean()) < 0:
        loss.backward()
        xm.optimizer_step(optimizer)
        xm.mark_step()
elif SHAPE == "endless":
    while True:
        train(torch.randn(8, 4).to(device))
elif SHAPE == "accumulate":
    for number, (batch,) in enumerate(pl.MpDeviceLoader(sampled(8000, 8), device), 1):
        model(batch).square().mean().backward()
        if number % 10 == 0:
            xm.optimizer_step(optimizer)
            optimizer.zero_grad()
elif SHAPE == "list":
    for batch in pl.MpDeviceLoader([torch.randn(8, 4) for _ in range(60)], device):
        train(batch)
elif SHAPE == "while_epochs":
    epoch, loader = 0, sampled(8000, 8)
    while epoch < 3:
        for (batch,) in pl.MpDeviceLoader(loader, device):
            train(batch)
        epoch += 1
elif SHAPE == "limits":
    step, updates, seen, loader = 0, 0, 0.0, pl.MpDeviceLoader(sampled(8000, 8), device)
    for _epoch in range(3):
        for number, (batch,) in enumerate(loader):
            if number >= 100 or updates >= 70 or seen > 9.0:
                break
            model(batch).square().mean().backward()
            step, seen = step + 1, seen + 0.01
            if step % 5 == 0:
                xm.optimizer_step(optimizer)
                optimizer.zero_grad()
                updates += 1
        if step >= 700:
            break
elif SHAPE == "by_turns":
    loader, evaluation = sampled(8000, 8), sampled(400, 10)
    for _epoch in range(3):
        either(loader, True)
        with torch.no_grad():
            either(evaluation, False)
            either(loader, False)
elif SHAPE == "zip":
    for (batch,), _ in zip(sampled(8000, 8), sampled(1600, 8)):
        train(batch.to(device))
        xm.mark_step()
elif SHAPE == "generator":
    step = 0
    for batch in forever(pl.MpDeviceLoader(sampled(8000, 8), device)):
        train(batch)
        step += 1
        if step >= 300:
            break
elif SHAPE in ("sliced", "sliced_pairs", "cycled"):
    loader = pl.MpDeviceLoader(sampled(8000, 8), device)
    for _epoch in range(2):
        batches = itertools.islice(pairs(loader) if SHAPE == "sliced_pairs" else loader, 100)
        batches = itertools.cycle(batches) if SHAPE == "cycled" else batches
        for _number, batch in enumerate(batches):
            for part in batch:
                train(part)
elif SHAPE == "sliced_once":
    for batch in itertools.islice(forever(pl.MpDeviceLoader(sampled(8000, 8), device)), 300):
        train(batch)
elif SHAPE == "slice_then_rest":
    batches = iter(pl.MpDeviceLoader(sampled(8000, 8), device))
    for (batch,) in itertools.islice(batches, 100):
        train(batch)
    for (batch,) in batches:
        train(batch)
elif SHAPE == "handed_on":
    loader = pl.MpDeviceLoader(sampled(8000, 8), device)
    for _epoch in range(3):
        for (batch,) in handed_on(loader):
            train(batch)
    print("the end")
elif SHAPE == "counted_first":
    loader = sampled(800, 8)
    print("samples:", sum(len(batch) for (batch,) in loader), len([batch for (batch,) in loader]))
    epochs(loader, 3)
elif SHAPE == "looked":
    loader = sampled(800, 8)
    for _epoch in range(3):
        print("a batch has", len(next(iter(loader))[0]))
        for (batch,) in pl.MpDeviceLoader(loader, device):
            train(batch)
elif SHAPE == "tried_first":
    loader = sampled(800, 8)
    for number, (batch,) in enumerate(pl.MpDeviceLoader(loader, device)):
        train(batch)
        if number >= 3:
            break
    epochs(loader, 3)
elif SHAPE == "inside":
    loader, evaluation = sampled(8000, 8), sampled(400, 10)
    for number, (batch,) in enumerate(pl.MpDeviceLoader(loader, device), 1):
        train(batch)
        if number % 3 == 0:
            evaluate(evaluation)
elif SHAPE == "within":
    loader, evaluation = sampled(8000, 8), sampled(400, 10)
    for _epoch in range(2):
        for (batch,) in pl.MpDeviceLoader(loader, device):
            train(batch)
        for (batch,) in pl.MpDeviceLoader(evaluation, device):
            with torch.no_grad():
                model(batch).sum()
elif SHAPE in ("read_within", "read_after"):
    held_out = [sampled(400, 10) for _ in range(1 if SHAPE == "read_within" else 3)]
    for _epoch in range(3):
        for (batch,) in pl.MpDeviceLoader(sampled(800, 8), device):
            train(batch)
        for part in held_out:
            with torch.no_grad():
                for (batch,) in pl.MpDeviceLoader(part, device):
                    total = model(batch).sum()
                    if SHAPE == "read_within":
                        total.item()  # line: within
            if SHAPE == "read_after":
                print("evaluated", total.item())
elif SHAPE in ("thirteen", "fourteen"):
    epochs(sampled(8000, 8), 13 if SHAPE == "thirteen" else 14, sampled(400, 10))
elif SHAPE == "at_each_fifth":
    loader, evaluation = sampled(8000, 8), sampled(400, 10)
    for epoch in range(90):
        for (batch,) in pl.MpDeviceLoader(loader, device):
            train(batch)
        if epoch % 5 == 4:
            evaluate(evaluation)
elif SHAPE == "stops":
    data, worse = TensorDataset(torch.randn(400, 4)), 0
    held_out = DataLoader(data, 10, sampler=range(dist.get_rank(), 400, dist.get_world_size()))
    loader = sampled(1004, 8)
    for _epoch in range(40):
        for (batch,) in pl.MpDeviceLoader(loader, device):
            train(batch)
        print("weights", model.weight.sum().item())
        with torch.no_grad():
            for (batch,) in pl.MpDeviceLoader(held_out, device):
                model(batch).sum()
        worse += 1
        if worse >= 3:
            break
elif SHAPE in ("saved", "grouped"):
    loader = sampled(800, 8)
    if SHAPE == "grouped":
        loader = pl.MpDeviceLoader(loader, device, batches_per_execution=4)
    for _epoch in range(2):
        for (batch,) in loader:
            model(batch.to(device)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    xm.save(model.state_dict(), os.devnull)
elif SHAPE == "persistent":
    epochs(sampled(800, 8, num_workers=2, persistent_workers=True), 3)
