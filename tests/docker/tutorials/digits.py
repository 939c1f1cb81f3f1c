"""Pictures of ten made-up digits, 8 by 8, and a multi-layer perceptron for them."""

import torch
from torch import nn
from torch.utils.data import TensorDataset


def dataset(samples, seed=0):
    generator = torch.Generator().manual_seed(7)
    prototypes = torch.rand(10, 64, generator=generator)
    generator.manual_seed(seed)
    labels = torch.randint(0, 10, (samples,), generator=generator)
    pictures = prototypes[labels] + 0.2 * torch.randn(samples, 64, generator=generator)
    return TensorDataset(pictures.view(-1, 1, 8, 8), labels)


class MLP(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
        )

    def forward(self, pictures):
        return torch.log_softmax(self.layers(pictures.flatten(1)), dim=1)
