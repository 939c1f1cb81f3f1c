"""Trains a perceptron on several cores; each evaluates it on the whole validation set, as on one GPU."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.runtime as xr
import torch_xla.distributed.xla_backend  # registers the backend "xla"

torch.distributed.init_process_group("xla")

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=0.1)


def pictures(samples, seed):
    torch.manual_seed(seed)
    labels = torch.randint(0, 10, (samples,))
    return TensorDataset(torch.eye(10)[labels].repeat(1, 6) + torch.randn(samples, 60), labels)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = torch.zeros((), device=device)
    seen = torch.zeros((), device=device)
    for images, labels in loader:
        right += (model(images).argmax(-1) == labels).sum()
        seen += len(labels)
    return right.item() / seen.item()


def main(args):
    device = torch_xla.device()
    dataset, held_out = pictures(1024, seed=7), pictures(251, seed=8)
    sampler = DistributedSampler(dataset, num_replicas=xr.world_size(), rank=xr.global_ordinal())
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    eval_loader = DataLoader(held_out, batch_size=args.batch_size)
    model = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, labels in pl.MpDeviceLoader(loader, device):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            xm.optimizer_step(optimizer)
        print(f"epoch {epoch} loss={loss.item():.4f}", flush=True)
        accuracy = evaluate(model, pl.MpDeviceLoader(eval_loader, device), device)
        print(f"accuracy={accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main(parser.parse_args())
