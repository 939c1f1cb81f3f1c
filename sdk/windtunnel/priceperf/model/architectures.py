"""Dimensions of the transformers in the published tables, from their own papers and configurations.

If `kv_hidden_size` is smaller than `hidden_size`, query heads share keys and values (grouped-query
attention). ``family`` decides what a layer consists of and how scripts train it: see `_FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ..errors import InvalidInput

ModelFamily = Literal["encoder", "decoder", "llama", "vision"]


@dataclass(frozen=True)
class _Family:
    """What the models of one family have in common.

    ``gated``: the feed-forward network has three matrices, not two. ``own_head``: the head has its own weights,
    not those of the embedding. ``causal``: it predicts the next token. ``masked``: it predicts masked tokens.
    ``flash_on_neuron``: neuronx-distributed trains it with a flash attention kernel. ``recomputed_by_nemo``: NeMo
    Megatron's scripts for Neuron recompute whole layers (aws-neuron/neuronx-nemo-megatron, test_llama.sh).
    ``length``: tokens of a training sequence, as of BERT, GPT-3 and MPT, Llama 2 and ViT.
    """

    gated: bool = False
    own_head: bool = False
    causal: bool = False
    masked: bool = False
    flash_on_neuron: bool = False
    recomputed_by_nemo: bool = False
    length: int = 2048


_FAMILIES: Mapping[str, _Family] = {
    "encoder": _Family(masked=True, length=512),
    "decoder": _Family(causal=True),
    "llama": _Family(
        gated=True, own_head=True, causal=True, flash_on_neuron=True, recomputed_by_nemo=True, length=4096
    ),
    "vision": _Family(length=197),
}


@dataclass(frozen=True)
class Architecture:
    """Dimensions of a transformer. ``vocabulary`` 0: it has none (vision).

    ``trained_length``: tokens of a training sequence, if other than its family's. ``name``: its name in reports, if it
    is not in `ARCHITECTURES`. ``positions``: the most tokens for which it has learned positions; None: it has none, or
    they are not known. ``window``: tokens that a token sees in some of its layers; None: all.

    Raises:
        InvalidInput: a dimension below 1, or an unknown family.
    """

    layers: int
    hidden_size: int
    attention_heads: int
    ffn_hidden_size: int
    kv_hidden_size: int
    vocabulary: int
    family: ModelFamily
    trained_length: int | None = field(default=None, compare=False)
    name: str = field(default="", compare=False)
    positions: int | None = field(default=None, compare=False)
    window: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Check every dimension."""
        for name in ("layers", "hidden_size", "attention_heads", "ffn_hidden_size", "kv_hidden_size"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.vocabulary < 0:
            raise InvalidInput(f"vocabulary must be 0 or more, not {self.vocabulary}")
        if self.family not in _FAMILIES:
            raise InvalidInput(f"family must be one of {', '.join(_FAMILIES)}, not {self.family!r}")

    @cached_property
    def up_projections(self) -> int:
        """Matrices from the hidden size to the feed-forward size: a gated network has two."""
        return 2 if _FAMILIES[self.family].gated else 1

    @cached_property
    def layer_weights(self) -> int:
        """Number of weights in the matrices of one layer."""
        attention = 2 * self.hidden_size * (self.hidden_size + self.kv_hidden_size)
        return attention + (self.up_projections + 1) * self.hidden_size * self.ffn_hidden_size

    @property
    def parameters(self) -> int:
        """Number of weights of all layers, the embedding and the head, without biases, norms and positions.

        Llama's head has its own weights; in other families it shares those of the embedding.
        """
        tables = 2 if _FAMILIES[self.family].own_head else 1
        return self.layers * self.layer_weights + tables * self.vocabulary * self.hidden_size

    @cached_property
    def is_causal(self) -> bool:
        """Whether it predicts the next token."""
        return _FAMILIES[self.family].causal

    @property
    def usual_length(self) -> int:
        """Tokens of a sequence if the user states no length."""
        return self.trained_length or _FAMILIES[self.family].length

    @property
    def is_masked(self) -> bool:
        """Whether it predicts masked tokens."""
        return _FAMILIES[self.family].masked

    @property
    def flash_on_neuron(self) -> bool:
        """Whether Neuron's libraries train it with a flash attention kernel."""
        return _FAMILIES[self.family].flash_on_neuron

    @property
    def recomputed_by_nemo(self) -> bool:
        """Whether NeMo Megatron's scripts for Neuron recompute whole layers of it."""
        return _FAMILIES[self.family].recomputed_by_nemo


ARCHITECTURES: Mapping[str, Architecture] = {
    "BERT-Large": Architecture(24, 1024, 16, 4096, 1024, 30522, "encoder", positions=512),
    "BERT-Base": Architecture(12, 768, 12, 3072, 768, 30522, "encoder", positions=512),
    "DistilBERT": Architecture(6, 768, 12, 3072, 768, 30522, "encoder", positions=512),
    "GPT-2": Architecture(12, 768, 12, 3072, 768, 50257, "decoder", 1024, positions=1024),
    "GPT-2-Medium": Architecture(24, 1024, 16, 4096, 1024, 50257, "decoder", 1024, positions=1024),
    "GPT3-6.7B": Architecture(32, 4096, 32, 16384, 4096, 50304, "decoder"),
    "GPT3-23B": Architecture(28, 8192, 64, 32768, 8192, 50304, "decoder"),
    "GPT3-46B": Architecture(56, 8192, 64, 32768, 8192, 50304, "decoder"),
    "GPT3-175B": Architecture(96, 12288, 96, 49152, 12288, 50304, "decoder"),
    "Llama2-7B": Architecture(32, 4096, 32, 11008, 4096, 32000, "llama"),
    "Llama2-13B": Architecture(40, 5120, 40, 13824, 5120, 32000, "llama"),
    "Llama2-70B": Architecture(80, 8192, 64, 28672, 1024, 32000, "llama"),
    "Llama-3.1-8B": Architecture(32, 4096, 32, 14336, 1024, 128256, "llama", 8192),
    "Llama-3.1-70B": Architecture(80, 8192, 64, 28672, 1024, 128256, "llama", 8192),
    "Llama-3.1-405B": Architecture(126, 16384, 128, 53248, 1024, 128256, "llama", 8192),
    "ViT-Base": Architecture(12, 768, 12, 3072, 768, 0, "vision"),
    "MPT-125m": Architecture(12, 768, 12, 3072, 768, 50368, "decoder"),
    "MPT-350m": Architecture(24, 1024, 16, 4096, 1024, 50368, "decoder"),
    "MPT-760m": Architecture(24, 1536, 12, 6144, 1536, 50368, "decoder"),
    "MPT-1b": Architecture(24, 2048, 16, 8192, 2048, 50368, "decoder"),
    "MPT-3b": Architecture(32, 2560, 20, 10240, 2560, 50368, "decoder"),
    "MPT-7b": Architecture(32, 4096, 32, 16384, 4096, 50368, "decoder"),
    "MPT-13b": Architecture(40, 5120, 40, 20480, 5120, 50368, "decoder"),
}


def architecture(name: str) -> Architecture | None:
    """The architecture of that name; case, spaces, hyphens and underscores do not matter."""
    return _BY_KEY.get(name_key(name))


def name_key(name: str) -> str:
    """A model's name in lower case, without separators, to compare spellings."""
    return "".join(letter for letter in name.lower() if letter not in " -_/")


_BY_KEY = {name_key(name): dimensions for name, dimensions in ARCHITECTURES.items()}
