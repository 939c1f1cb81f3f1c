"""Counts the scores of `scaled_dot_product_attention`: torch_xla writes it out, a GPU has one fused kernel for it.

In a graph's HLO it looks like attention that the script writes out itself. Calls in a `torch.compile` function are
not seen here, nor those under `torch.inference_mode` and `torch.vmap`, which bypass the kernel that differentiates.
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
"""The argument by which a script chooses an attention of transformers."""
_scores: Counter[str] = Counter()


def around_attention(attention: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Decorate torch's kernel, whose first argument is the keyset: count the scores of all heads and samples."""

    def counted(
        keys: Any, query: torch.Tensor, key: torch.Tensor, *others: Any, **named: Any
    ) -> torch.Tensor:
        found = attention(keys, query, key, *others, **named)  # raises for wrong arguments
        # Dynamo calls this with fake tensors when it compiles. The result has the samples and heads of all inputs.
        scores = 0 if isinstance(query, FakeTensor) else math.prod(found.shape[:-1]) * key.shape[-2]
        _scores["scores"] += scores
        # ``others``: the values, the mask, dropout's probability and is_causal.
        if named.get("is_causal", others[3] if len(others) > 3 else False):
            _scores["causal_scores"] += scores
        return found

    return counted


def take() -> dict[str, int]:
    """The scores since the last call: ``scores``, and the ``causal_scores`` among them; empty without any."""
    taken = dict(+_scores)
    _scores.clear()
    return taken


def elsewhere(trained: Iterable[torch.Tensor], modules: Iterable[torch.nn.Module]) -> dict[str, bool]:
    """``sdpa_elsewhere``: without torch_xla, transformers would use `scaled_dot_product_attention` for this model.

    If a script chooses no attention, transformers takes the eager one where torch_xla is installed. ``is_causal``: the
    model generates text. Empty if this does not apply.
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
    # Not getattr, at which a lazy module may import a missing one.
    files = {vars(module).get("__file__") for module in modules}
    for file in files:
        if isinstance(file, str) and file.endswith(".py") and script_lines.is_users(file):
            try:
                if _ASKS in Path(file).read_text(encoding="utf-8", errors="replace"):
                    return True
            except OSError:
                continue
    return False
