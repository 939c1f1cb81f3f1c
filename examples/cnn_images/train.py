"""Train a small convolutional network to tell shapes apart, in plain PyTorch/XLA, on all cores of a host."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SIZE, SHAPES = 24, ("square", "ring", "cross", "stripes")


def pictures(count, seed):
    """Noisy grey pictures, each of one of four shapes at a random place, with the shape's number as label."""
    chance = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % len(SHAPES)
    grid = torch.arange(SIZE).float()
    centre = 7 + 10 * torch.rand(count, 2, 1, 1, generator=chance)
    down, right = (grid[:, None] - centre[:, 0]).abs(), (grid[None, :] - centre[:, 1]).abs()
    inside = torch.maximum(down, right) < 6
    shapes = torch.stack(
        [
            inside,
            inside & (torch.hypot(down, right) > 3) & (torch.hypot(down, right) < 6),
            inside & (torch.minimum(down, right) < 1.5),
            inside & (right % 4 < 2),
        ],
        dim=1,
    )
    drawn = shapes[torch.arange(count), labels].float()
    noise = 0.3 * torch.randn(count, SIZE, SIZE, generator=chance)
    return TensorDataset((drawn + noise)[:, None], labels)


def network():
    def block(inputs, outputs):
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)
        )

    return nn.Sequential(block(1, 8), block(8, 16), block(16, 32), nn.Flatten(), nn.Linear(288, len(SHAPES)))


def loader(data, batch_size, device, *, shuffle):
    """A loader and its sampler. Each core reads its own part, in batches of one size: a new shape is a new graph."""
    sampler = DistributedSampler(
        data, num_replicas=xr.world_size(), rank=xr.global_ordinal(), shuffle=shuffle, drop_last=True
    )
    return pl.MpDeviceLoader(DataLoader(data, batch_size, sampler=sampler, drop_last=True), device), sampler


def train(model, batches, optimizer, epoch):
    model.train()
    for step, (images, labels) in enumerate(batches):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        xm.optimizer_step(optimizer)
        if step % 10 == 0:
            xm.add_step_closure(say, args=(epoch, step, loss.detach()))


def say(epoch, step, loss):
    xm.master_print(f"epoch={epoch} step={step} loss={loss.item():.4f}", flush=True)


def average_statistics(model):
    """Make them equal on all cores before they evaluate and save: each has BatchNorm's of its own pictures."""
    statistics = [each for each in model.buffers() if each.is_floating_point()]
    xm.all_reduce(xm.REDUCE_SUM, statistics, scale=1 / xr.world_size())


def accuracy(model, batches, device):
    """The share of pictures, over all cores, that are classified correctly."""
    model.eval()
    right, seen = torch.zeros((), device=device), 0
    torch_xla.sync()
    with torch.no_grad():
        for images, labels in batches:
            right += (model(images).argmax(dim=1) == labels).sum()
            seen += len(labels)
    total = xm.all_reduce(xm.REDUCE_SUM, right)
    return total.item() / (seen * xr.world_size())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=0.01)
    parser.add_argument("--model_dir", default=os.environ.get("SM_MODEL_DIR", "model"))
    arguments = parser.parse_args()
    dist.init_process_group("xla")
    torch.manual_seed(0)
    device = torch_xla.device()
    model = network().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    batches, sampler = loader(pictures(960, seed=1), arguments.batch_size, device, shuffle=True)
    held_out, _ = loader(pictures(256, seed=2), arguments.batch_size, device, shuffle=False)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        train(model, batches, optimizer, epoch)
        average_statistics(model)
        xm.master_print(f"epoch={epoch} accuracy={accuracy(model, held_out, device):.4f}", flush=True)
    Path(arguments.model_dir).mkdir(parents=True, exist_ok=True)
    xm.save(model.state_dict(), str(Path(arguments.model_dir, "model.pt")))


if __name__ == "__main__":
    main()
