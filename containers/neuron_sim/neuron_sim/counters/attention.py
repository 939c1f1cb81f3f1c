"""What `scaled_dot_product_attention` computes: torch_xla writes it out, a GPU has one fused kernel for it.

Neither graph nor HLO tells it from attention that the script writes out. What `torch.compile` makes of a function is
not seen here, nor what `torch.inference_mode` and `torch.vmap` take past the kernel that differentiates.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from neuron_sim.counters import script_lines
from neuron_sim.counters.modules import parameters as parameters_of

_ASKS = "attn_implementation"
"""How a script asks transformers for an attention."""
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


def elsewhere(trained: Iterable[torch.Tensor], modules: Iterable[torch.nn.Module]) -> dict[str, bool]:
    """``sdpa_elsewhere``: without torch_xla `scaled_dot_product_attention` would compute the attention of the model.

    Where a script asks for none, transformers takes the eager one wherever torch_xla is installed. ``is_causal``: the
    model generates text.
    """
    wanted = {id(parameter) for parameter in trained}
    found = {"sdpa_elsewhere": False, "is_causal": False}
    for module in modules:
        kind, config = type(module), vars(module).get("config")
        settings = vars(config) if hasattr(config, "__dict__") else {}
        chose = settings.get("_attn_implementation_autoset") is True
        if not (chose and settings.get("_attn_implementation_internal") == "eager"):
            continue
        if getattr(kind, "_supports_sdpa", False) and any(id(one) in wanted for one in parameters_of(module)):
            generates = "GenerationMixin" in [base.__name__ for base in kind.__bases__]
            found["sdpa_elsewhere"] = True
            found["is_causal"] |= generates and settings.get("is_encoder_decoder") is not True
    return found if found["sdpa_elsewhere"] and not _script_asks() else {}


def _script_asks() -> bool:
    modules = [module for module in tuple(sys.modules.values()) if isinstance(module, ModuleType)]
    # Not by getattr: asked, a lazy module may import what is missing.
    files = {vars(module).get("__file__") for module in modules}
    for file in files:
        if isinstance(file, str) and file.endswith(".py") and script_lines.is_users(file):
            try:
                if _ASKS in Path(file).read_text(encoding="utf-8", errors="replace"):
                    return True
            except OSError:
                continue
    return False
