"""Operations that torch_neuronx adds to PyTorch, written in plain PyTorch: XLA fuses them as neuronx-cc would."""

from __future__ import annotations

import torch


class RmsNorm:
    """Root mean square normalisation; differentiable."""

    @staticmethod
    def apply(hidden: torch.Tensor, weight: torch.Tensor, eps: float, dim: int) -> torch.Tensor:
        """``hidden`` divided by its root mean square along ``dim`` (in fp32), times ``weight``; in hidden's dtype."""
        exact = hidden.float()
        scale = torch.rsqrt(exact.square().mean(dim, keepdim=True) + eps)
        return (exact * scale).to(hidden.dtype) * weight


def set_unload_prior_neuron_models_mode(value: bool) -> None:
    """Set whether older graphs leave the device's memory when a new one is loaded. It changes no result.

    Without effect here: XLA's CPU client keeps graphs in the memory of the host.
    """


class Argmax:
    """The position of the largest value, as torch.argmax finds it."""

    @staticmethod
    def apply(tensor: torch.Tensor, dim: int, keepdim: bool = False) -> torch.Tensor:
        """Along ``dim``; the first where several are largest."""
        return torch.argmax(tensor, dim, keepdim)


class Softmax:
    """Softmax, as torch.softmax computes it."""

    @staticmethod
    def apply(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        """Along ``dim``."""
        return torch.softmax(tensor, dim)


class TopK:
    """The largest values and where they are, as torch.topk finds them."""

    @staticmethod
    def apply(tensor: torch.Tensor, k: int, dim: int = -1) -> tuple[torch.Tensor, torch.Tensor]:
        """Along ``dim``, largest first."""
        values, places = torch.topk(tensor, k, dim)
        return values, places
