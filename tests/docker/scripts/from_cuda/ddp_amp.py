"""Trains a perceptron on all GPUs of a host: DistributedDataParallel over NCCL, fp16 with a GradScaler."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from tqdm import tqdm


def pictures(samples, seed):
    torch.manual_seed(seed)
    labels = torch.randint(0, 10, (samples,))
    return TensorDataset(torch.eye(10)[labels].repeat(1, 6) + torch.randn(samples, 60) / 4, labels)


def train_one_epoch(model, loader, optimizer, scaler, device, epoch):
    model.train()
    for step, (images, labels) in enumerate(tqdm(loader, disable=True)):
        images = images.cuda(non_blocking=True)  # to this rank's GPU
        labels = labels.cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    torch.cuda.synchronize()
    if dist.get_rank() == 0:
        print(f"epoch {epoch} loss={loss.item():.4f}", flush=True)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    right = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        right += (model(images).argmax(-1) == labels).sum()
    dist.all_reduce(right)
    return right.item() / (len(loader.dataset) * dist.get_world_size())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--model-dir", default=os.environ.get("SM_MODEL_DIR", "."))
    args = parser.parse_args()

    dist.init_process_group(backend="nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device(f"cuda:{local_rank}")
    torch.backends.cudnn.benchmark = True

    train, test = pictures(1024, seed=7), pictures(256, seed=8)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=32, sampler=sampler, pin_memory=True, drop_last=True)
    test_loader = DataLoader(test, batch_size=64)

    model = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Linear(64, 10)).to(local_rank)
    model = DDP(model, device_ids=[local_rank], output_device=local_rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scaler = GradScaler()

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, scaler, device, epoch)
        accuracy = evaluate(model, test_loader, device)
        if dist.get_rank() == 0:
            print(f"accuracy={accuracy:.3f}", flush=True)
            torch.save(
                {"model": model.module.state_dict(), "epoch": epoch},  # without DDP's prefix
                os.path.join(args.model_dir, "model.pt"),
            )

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
