"""What `scaled_dot_product_attention` computes: torch_xla writes it out, a GPU has one fused kernel for it.

Neither graph nor HLO tells it from attention that the script writes out. What `torch.compile` makes of a function is
not seen here, nor what `torch.inference_mode` and `torch.vmap` take past the kernel that differentiates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

_scores: Counter[str] = Counter()


def around_attention(attention: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Around torch's kernel, which gets a keyset first: count the scores, of all heads and samples."""

    def counted(
        keys: Any, query: torch.Tensor, key: torch.Tensor, *others: Any, **named: Any
    ) -> torch.Tensor:
        found = attention(keys, query, key, *others, **named)  # refuses what it cannot take
        # Dynamo computes with fake ones, when it compiles. What comes out has the samples and heads of all.
        scores = 0 if isinstance(query, FakeTensor) else math.prod(found.shape[:-1]) * key.shape[-2]
        _scores["scores"] += scores
        # After the values come the mask, dropout's probability and this.
        if named.get("is_causal", others[3] if len(others) > 3 else False):
            _scores["causal_scores"] += scores
        return found

    return counted


def take() -> dict[str, int]:
    """Those since the last call: ``scores``, and of these ``causal_scores``; empty without any."""
    taken = dict(+_scores)
    _scores.clear()
    return taken
