"""Models that others trained, and published how fast: beside `other_models`, for `gpu_transfer` to rehearse.

NVIDIA's networks on one A100, and small ones that users trained on one NeuronCore (`published_other_models.csv` has who
and where). Built anew to the published dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from other_models import Classified, Other, pictures
from torch import nn


def _resnext() -> nn.Module:
    """101 layers, 32 groups of 4 features."""
    from torchvision.models import resnet

    return Classified(resnet.ResNet(resnet.Bottleneck, [3, 4, 23, 3], groups=32, width_per_group=4))


def _small(pixels: int, colours: int = 3) -> Callable[[int], dict[str, torch.Tensor]]:
    return lambda batch: pictures(batch, pixels, colours, classes=10)


def _mlp(width: int, hidden: int) -> Callable[[], nn.Module]:
    return lambda: Classified(
        nn.Sequential(
            nn.Flatten(), nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 10),
        )
    )  # fmt: skip


def _cnn(pixels: int, widths: tuple[int, ...], hidden: int, *, norm: bool) -> Callable[[], nn.Module]:
    """3 x 3 convolutions, each halved by a maximum; ``widths[0]``: colours."""

    def built() -> nn.Module:
        layers: list[nn.Module] = []
        for came, goes in pairwise(widths):
            layers.append(nn.Conv2d(came, goes, 3, padding=1))
            layers += [nn.BatchNorm2d(goes)] if norm else []
            layers += [nn.ReLU(), nn.MaxPool2d(2)]
        left = widths[-1] * (pixels // 2 ** (len(widths) - 1)) ** 2
        layers += [nn.Flatten(), nn.Linear(left, hidden), nn.ReLU(), nn.Linear(hidden, 10)]
        return Classified(nn.Sequential(*layers))

    return built


def _residual_cnn() -> nn.Module:
    """Four residual blocks of 64 to 256 channels, three of which halve."""
    from torchvision.models.resnet import BasicBlock, conv1x1, conv3x3

    def halved(came: int, goes: int) -> nn.Module:
        return BasicBlock(came, goes, 2, nn.Sequential(conv1x1(came, goes, 2), nn.BatchNorm2d(goes)))

    return Classified(
        nn.Sequential(
            conv3x3(3, 64), nn.BatchNorm2d(64), nn.ReLU(),
            BasicBlock(64, 64), halved(64, 128), halved(128, 256), halved(256, 256),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10),
        )
    )  # fmt: skip


class _ViT(nn.Module):
    """A vision transformer that attends eagerly or by `scaled_dot_product_attention`, as torch's own layer does."""

    def __init__(
        self, pixels: int, colours: int, patch: int, width: int, layers: int, heads: int, hidden: int
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(colours, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, (pixels // patch) ** 2 + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, hidden, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits of each picture."""
        patches = self.patches(inputs).flatten(2).transpose(1, 2)
        whole = torch.cat([self.first.expand(len(inputs), -1, -1), patches], 1) + self.places
        return self.head(self.layers(whole)[:, 0])


def _vit(*dimensions: int) -> Callable[[], nn.Module]:
    return lambda: Classified(_ViT(*dimensions))


PUBLISHED = {
    "ResNeXt-101": Other(_resnext, pictures, ()),
    "MNIST MLP": Other(_mlp(784, 256), _small(28, 1), ()),
    "MNIST CNN": Other(_cnn(28, (1, 32, 64), 128, norm=False), _small(28, 1), ()),
    "MNIST ViT": Other(_vit(28, 1, 7, 64, 4, 4, 128), _small(28, 1), ()),
    "CIFAR-10 MLP": Other(_mlp(3072, 512), _small(32), ()),
    "CIFAR-10 CNN": Other(_cnn(32, (3, 32, 64, 128), 256, norm=True), _small(32), ()),
    "CIFAR-10 ViT": Other(_vit(32, 3, 4, 128, 6, 8, 256), _small(32), ()),
    "Residual CNN": Other(_residual_cnn, _small(64), ()),
    "ViT of 64 pixels": Other(_vit(64, 3, 8, 256, 6, 4, 1024), _small(64), ()),
}
"""By name."""
