"""Trains a perceptron on one GPU."""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--model-dir", default=os.environ.get("SM_MODEL_DIR", "."))


def pictures(samples):
    torch.manual_seed(7)
    labels = torch.randint(0, 10, (samples,))
    return TensorDataset(torch.eye(10)[labels].repeat(1, 6) + torch.randn(samples, 60) / 4, labels)


def main(args):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = pictures(1024)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss={loss.item():.4f}", flush=True)

    torch.save(model.state_dict(), os.path.join(args.model_dir, "model.pt"))


if __name__ == "__main__":
    main(parser.parse_args())
