"""The flash attention kernels of Neuron's compiler, written in plain PyTorch: the same results, other costs.

NxD Core and optimum-neuron train with them. Here the scores go through memory, a part at a time, and count as memory
traffic; the real kernel keeps them on the chip. So the modelled time of a step is too long.

Source: the arguments, layouts and results are those of `nki.kernels.attention` in Neuron's documentation ("NKI
Kernels") and as neuronx_distributed 2.29 calls them. Shapes: (batch, heads, head size, sequence), unless one says more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from neuron_sim.device.nki import Kernel
from neuron_sim.diagnostics import log
from neuron_sim.errors import NotSimulatedError

_PARTITIONS = 128
"""Partitions (rows) of the chip's memory, over which the kernel spreads the sums of a sequence."""
_LEAST_PART = 512
_PARTS = 8
"""The most parts of a sequence; each adds a dozen operations to the graph."""
_told = False


@dataclass(frozen=True)
class FlashConfig:
    """The kernel's options. Results depend on ``should_transpose_v``, ``training`` and ``lse_dtype`` only."""

    seq_tile_size: int = 2048
    attn_core_tile_size: int = 256
    training: bool = True
    should_transpose_v: bool = False
    lse_dtype: str = ""


def _forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seed: torch.Tensor | None = None,
    logit_bias: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    use_causal_mask: bool = True,
    mixed_precision: bool = True,
    dropout_p: float = 0.0,
    config: FlashConfig | None = None,
) -> Any:
    """Attention; with ``training`` also the log-sum-exp of the scores, for the backward pass.

    ``k`` and ``v`` may have fewer heads. ``v``: (batch, heads, sequence, head size) without ``should_transpose_v``.
    Sums are in fp32, with and without ``mixed_precision``.
    Returns (batch, heads, sequence, head size) and (batch, heads, 128, sequence / 128).

    Raises:
        NotSimulatedError: dropout, or a bias.
        ValueError: a shape that the kernel does not take.
    """
    _check(q, dropout_p, logit_bias)
    config = config or FlashConfig()
    rows = v.transpose(2, 3) if config.should_transpose_v else v
    k, rows = (_for_each_head(one, q.shape[1]) for one in (k, rows))
    results, sums = [], []
    for first, end, keys in _parts(q.shape[3], k.shape[3], causal=use_causal_mask):
        scores = _scores(q, k, first, end, keys, _scale(softmax_scale, q), causal=use_causal_mask)
        log_sum = scores.logsumexp(3)
        weights = (scores - log_sum.unsqueeze(3)).exp().to(rows.dtype)
        results.append(weights @ rows[:, :, :keys])
        sums.append(log_sum)
    result = torch.cat(results, 2).to(q.dtype)
    if not config.training:
        return result
    each = torch.cat(sums, 2).unflatten(2, (-1, _PARTITIONS)).transpose(2, 3)
    return result, each.to(getattr(torch, config.lse_dtype)) if config.lse_dtype else each


def _backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    dy: torch.Tensor,
    lse: torch.Tensor,
    seed: torch.Tensor | None = None,
    logit_bias: torch.Tensor | None = None,
    use_causal_mask: bool = True,
    mixed_precision: bool = True,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of ``q``, ``k`` and ``v``. ``dy``: the gradient of the result ``o``; ``lse``: see `_forward`.

    Raises:
        NotSimulatedError: dropout, or a bias.
        ValueError: a shape that the kernel does not take.
    """
    _check(q, dropout_p, logit_bias)
    heads, scale = q.shape[1], _scale(softmax_scale, q)
    keys_of_all, values = _for_each_head(k, heads), _for_each_head(v, heads)
    log_sums = lse.transpose(2, 3).flatten(2).float()
    drift = (o.float() * dy.float()).sum(2)
    dq = []
    dk, dv = torch.zeros_like(keys_of_all, dtype=torch.float32), torch.zeros_like(values, dtype=torch.float32)
    for first, end, keys in _parts(q.shape[3], k.shape[3], causal=use_causal_mask):
        scores = _scores(q, keys_of_all, first, end, keys, scale, causal=use_causal_mask)
        weights = (scores - log_sums[:, :, first:end, None]).exp()
        part = dy[..., first:end]
        toward = (part.transpose(2, 3) @ values[..., :keys]).float() - drift[:, :, first:end, None]
        of_scores = (weights * toward * scale).to(q.dtype)
        dq.append(keys_of_all[..., :keys] @ of_scores.transpose(2, 3))
        rest = (0, k.shape[3] - keys)
        dk = dk + torch.nn.functional.pad((q[..., first:end] @ of_scores).float(), rest)
        dv = dv + torch.nn.functional.pad((part @ weights.to(part.dtype)).float(), rest)
    dk, dv = (one.unflatten(1, (k.shape[1], -1)).sum(2).to(k.dtype) for one in (dk, dv))
    return torch.cat(dq, 3).to(q.dtype), dk, dv


flash_fwd, flash_attn_bwd = Kernel(_forward), Kernel(_backward)


def _check(q: torch.Tensor, dropout_p: float, logit_bias: torch.Tensor | None) -> None:
    global _told
    size, queries = q.shape[2:]
    if size > _PARTITIONS or queries % _PARTITIONS:
        raise ValueError(
            f"Neuron's flash attention got heads of size {size} and {queries} tokens; it takes heads of up to "
            f"{_PARTITIONS}, and tokens in multiples of {_PARTITIONS}. Pad the sequences, or ask for plain attention."
        )
    if dropout_p or logit_bias is not None:
        raise NotSimulatedError(
            f"Flash attention with {'dropout' if dropout_p else 'a bias of its scores'}",
            "Ask for plain attention in rehearsals, or set its attention dropout to 0.",
        )
    if not _told:
        _told = True
        log.say(
            "flash attention: plain attention in its place here. Its scores count as memory traffic, so a modelled "
            "step is longer than trn1's."
        )


def _scale(given: float | None, q: torch.Tensor) -> float:
    return float(q.shape[2] ** -0.5 if given is None else given)


def _for_each_head(shared: torch.Tensor, heads: int) -> torch.Tensor:
    return shared if shared.shape[1] == heads else shared.repeat_interleave(heads // shared.shape[1], 1)


def _parts(queries: int, keys: int, *, causal: bool) -> Iterator[tuple[int, int, int]]:
    """First and last query of each part, and how many keys it sees."""
    size = max(_LEAST_PART, -(-queries // _PARTS))
    for first in range(0, queries, size):
        end = min(queries, first + size)
        yield first, end, min(keys, end) if causal else keys


def _scores(
    q: torch.Tensor, k: torch.Tensor, first: int, end: int, keys: int, scale: float, *, causal: bool
) -> torch.Tensor:
    """The scores of a part's queries with the keys that they see, in fp32."""
    scores = (q[..., first:end].transpose(2, 3) @ k[..., :keys]).float() * scale
    if not causal:
        return scores
    places = torch.arange(max(end, keys), device=q.device)
    return scores.masked_fill(places[:keys] > places[first:end, None], float("-inf"))
