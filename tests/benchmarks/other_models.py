"""Models beside the transformers of `gpu_training`: what else a plain script trains.

Convolutions, speech, two towers, encoder and decoder, recurrence, tables of embeddings. Random weights and data;
built by torchvision and transformers, or here where neither has one. `gpu_training` measures them on a GPU,
`gpu_transfer` rehearses them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import nn


class Other(NamedTuple):
    """``build``: the model, which called with a batch gives something with a ``loss``; ``sample``: a batch of so many
    samples on the CPU, as a collator gives it; ``batches``: measured.
    """

    build: Callable[[], nn.Module]
    sample: Callable[[int], dict[str, torch.Tensor]]
    batches: tuple[int, ...]


class Loss(NamedTuple):
    """As transformers' models return it."""

    loss: torch.Tensor


class Classified(nn.Module):
    """A model with the cross entropy of what it says."""

    def __init__(self, model: nn.Module) -> None:
        """``model``: logits of ``inputs``."""
        super().__init__()
        self.model = model

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> Loss:
        """The mean loss."""
        logits = self.model(inputs)
        return Loss(nn.functional.cross_entropy(logits.float(), labels))


class UNet(nn.Module):
    """Segmentation: four halvings, 64 to 1,024 channels, two convolutions each; 31 million weights."""

    def __init__(self, classes: int = 21, width: int = 64) -> None:
        """``classes``: of each pixel."""
        super().__init__()
        widths = [width * 2**level for level in range(5)]
        self.down = nn.ModuleList(
            self._twice(came, goes) for came, goes in zip([3, *widths], widths, strict=False)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(goes * 2, goes, 2, 2) for goes in reversed(widths[:-1]))
        self.merge = nn.ModuleList(self._twice(goes * 2, goes) for goes in reversed(widths[:-1]))
        self.out = nn.Conv2d(width, classes, 1)

    @staticmethod
    def _twice(came: int, goes: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(came, goes, 3, padding=1, bias=False), nn.BatchNorm2d(goes), nn.ReLU(inplace=True),
            nn.Conv2d(goes, goes, 3, padding=1, bias=False), nn.BatchNorm2d(goes), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits of each pixel."""
        levels = []
        for down in self.down:
            inputs = down(nn.functional.max_pool2d(inputs, 2) if levels else inputs)
            levels.append(inputs)
        levels.pop()
        for up, merge in zip(self.up, self.merge, strict=True):
            inputs = merge(torch.cat([levels.pop(), up(inputs)], 1))
        return self.out(inputs)


class WordLSTM(nn.Module):
    """The language model of PyTorch's examples, at its large size: two layers of 1,500."""

    def __init__(self, words: int = 33278, width: int = 1500) -> None:
        """``words``: of WikiText-2."""
        super().__init__()
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, 2, dropout=0.65, batch_first=True)
        self.decoder = nn.Linear(width, words)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits: batch, words, place."""
        return self.decoder(self.rnn(self.encoder(inputs))[0]).transpose(1, 2)


class Speech(nn.Module):
    """Frames of speech to phones: five GRUs of 800, in one direction."""

    def __init__(self) -> None:
        """80 filters, 41 phones."""
        super().__init__()
        self.rnn = nn.GRU(80, 800, 5, batch_first=True)
        self.out = nn.Linear(800, 41)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Logits: batch, phones, frame."""
        return self.out(self.rnn(inputs)[0]).transpose(1, 2)


class Recommender(nn.Module):
    """As DLRM: 26 tables, two perceptrons, the products of all pairs."""

    TABLES, ROWS, WIDTH, DENSE = 26, 50_000, 64, 13

    def __init__(self) -> None:
        """Tables of one size."""
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(self.ROWS, self.WIDTH) for _ in range(self.TABLES))
        self.bottom = self._perceptron(self.DENSE, 512, 256, self.WIDTH)
        pairs = (self.TABLES + 1) * self.TABLES // 2
        self.top = self._perceptron(pairs + self.WIDTH, 1024, 1024, 512, 256, 1)

    @staticmethod
    def _perceptron(*widths: int) -> nn.Sequential:
        layers = [(nn.Linear(came, goes), nn.ReLU()) for came, goes in pairwise(widths)]
        return nn.Sequential(*[part for layer in layers for part in layer][:-1])

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor, labels: torch.Tensor) -> Loss:
        """Of a click."""
        below = self.bottom(dense)
        vectors = torch.stack([below, *(table(sparse[:, each]) for each, table in enumerate(self.tables))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        rows, columns = torch.tril_indices(self.TABLES + 1, self.TABLES + 1, -1)
        flat = products.flatten(1)[:, (rows * (self.TABLES + 1) + columns).to(products.device)]
        logits = self.top(torch.cat([below, flat], 1))[:, 0]
        return Loss(nn.functional.binary_cross_entropy_with_logits(logits.float(), labels))


def _vision(name: str) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import torchvision

        return Classified(getattr(torchvision.models, name)())

    return build


def _transformers(model: str, config: str, **settings: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**settings))

    return build


def pictures(batch: int, pixels: int = 224, colours: int = 3, classes: int = 1000) -> dict[str, torch.Tensor]:
    """Of noise, each with a class."""
    return {
        "inputs": torch.randn(batch, colours, pixels, pixels),
        "labels": torch.randint(0, classes, (batch,)),
    }


def _masks(batch: int) -> dict[str, torch.Tensor]:
    return {"inputs": torch.randn(batch, 3, 256, 256), "labels": torch.randint(0, 21, (batch, 256, 256))}


def _perceptron() -> nn.Module:
    widths = [(54, 2048), *[(2048, 2048)] * 6]
    return Classified(
        nn.Sequential(
            *(nn.Sequential(nn.Linear(*each), nn.BatchNorm1d(each[1]), nn.ReLU()) for each in widths),
            nn.Linear(2048, 7),
        )
    )


def _tabular(batch: int) -> dict[str, torch.Tensor]:
    return {"inputs": torch.randn(batch, 54), "labels": torch.randint(0, 7, (batch,))}


def _words(batch: int) -> dict[str, torch.Tensor]:
    return {"inputs": torch.randint(0, 33278, (batch, 35)), "labels": torch.randint(0, 33278, (batch, 35))}


def _clicks(batch: int) -> dict[str, torch.Tensor]:
    return {
        "dense": torch.rand(batch, Recommender.DENSE),
        "sparse": torch.randint(0, Recommender.ROWS, (batch, Recommender.TABLES)),
        "labels": torch.randint(0, 2, (batch,)).float(),
    }


def _waves(batch: int) -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(batch, 5 * 16_000), "labels": torch.randint(0, 12, (batch,))}


def _spectra(batch: int) -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(batch, 80, 3000), "labels": torch.randint(0, 51865, (batch, 128))}


def _translations(batch: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(2, 32000, (batch, 512))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": torch.randint(2, 32000, (batch, 128)),
    }


def _captions(batch: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(0, 49400, (batch, 77))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.randn(batch, 3, 224, 224),
    }


def _sentences(batch: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(0, 128_000, (batch, 256))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": torch.randint(0, 2, (batch,)),
    }


def _films_of(name: str) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        import torchvision

        return Classified(getattr(torchvision.models.video, name)(num_classes=400))

    return build


def _films(batch: int) -> dict[str, torch.Tensor]:
    return {"inputs": torch.randn(batch, 3, 16, 112, 112), "labels": torch.randint(0, 400, (batch,))}


def _seen(batch: int) -> dict[str, torch.Tensor]:
    return {
        "pixel_values": torch.randn(batch, 3, 512, 512),
        "labels": torch.randint(0, 21, (batch, 512, 512)),
    }


def _frames(batch: int) -> dict[str, torch.Tensor]:
    return {"inputs": torch.randn(batch, 300, 80), "labels": torch.randint(0, 41, (batch, 300))}


def _clip() -> nn.Module:
    model = _transformers("CLIPModel", "CLIPConfig", projection_dim=512)()
    wrapped = model.forward
    model.forward = lambda **batch: wrapped(**batch, return_loss=True)
    return model


OTHERS = {
    "ResNet-50": Other(_vision("resnet50"), pictures, (32, 128)),
    "EfficientNet-B0": Other(_vision("efficientnet_b0"), pictures, (32, 128)),
    "ConvNeXt-Tiny": Other(_vision("convnext_tiny"), pictures, (32, 128)),
    "Swin-T": Other(_vision("swin_t"), pictures, (32, 128)),
    "U-Net": Other(lambda: Classified(UNet()), _masks, (4, 16)),
    "wav2vec2-Base": Other(
        _transformers(
            "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", num_labels=12, apply_spec_augment=False,
            layerdrop=0.0,
        ),
        _waves, (4, 16),
    ),
    "Whisper-Base": Other(
        _transformers(
            "WhisperForConditionalGeneration", "WhisperConfig", d_model=512, encoder_layers=6, decoder_layers=6,
            encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048,
            use_cache=False,
        ),
        _spectra, (4, 16),
    ),
    "T5-Base": Other(
        _transformers(
            "T5ForConditionalGeneration", "T5Config", d_model=768, d_ff=3072, num_layers=12, num_heads=12,
            decoder_start_token_id=0, use_cache=False,
        ),
        _translations, (4, 16),
    ),
    "CLIP-B32": Other(_clip, _captions, (32, 128)),
    "DeBERTa-v3-Base": Other(
        _transformers(
            "DebertaV2ForSequenceClassification", "DebertaV2Config", vocab_size=128_100, hidden_size=768,
            num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, relative_attention=True,
            position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
            layer_norm_eps=1e-7, max_relative_positions=-1, position_biased_input=False, type_vocab_size=0,
        ),
        _sentences, (8, 32),
    ),
    "LSTM": Other(lambda: Classified(WordLSTM()), _words, (20, 128)),
    "Recommender": Other(Recommender, _clicks, (2048, 16384)),
    "Perceptron": Other(_perceptron, _tabular, (512, 8192)),
}  # fmt: skip
"""By name."""

LATER = {
    "DenseNet-121": Other(_vision("densenet121"), pictures, (32, 128)),
    "RegNetY-3.2GF": Other(_vision("regnet_y_3_2gf"), pictures, (32, 128)),
    "MobileNetV3-Large": Other(_vision("mobilenet_v3_large"), pictures, (64, 256)),
    "R3D-18": Other(_films_of("r3d_18"), _films, (4, 16)),
    "SegFormer-B0": Other(
        _transformers("SegformerForSemanticSegmentation", "SegformerConfig", num_labels=21), _seen, (4, 16)
    ),
    "BART-Base": Other(
        _transformers(
            "BartForConditionalGeneration", "BartConfig", d_model=768, encoder_layers=6, decoder_layers=6,
            encoder_attention_heads=12, decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072,
            vocab_size=50265, use_cache=False,
        ),
        _translations, (4, 16),
    ),
    "GRU": Other(lambda: Classified(Speech()), _frames, (16, 64)),
}  # fmt: skip
"""Measured after the price model of these stood."""
