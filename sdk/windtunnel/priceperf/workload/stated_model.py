"""What a caller states of a model, checked against the model's own dimensions."""

from __future__ import annotations

from ..errors import InvalidInput, quoted
from .full_scale import is_number

_OTHER = 20
"""Stated parameters may be this many times the architecture's weights, up or down: tied layers, larger embeddings."""


def weights_of(own: int, stated: float | None) -> float:
    """Number of weights: as stated, or the architecture's ``own``. Raises `InvalidInput` for another model's number."""
    if stated is None or is_number(stated, own / _OTHER, own * _OTHER):
        return own if stated is None else stated
    raise InvalidInput(
        f"parameters must be about those of the architecture, {own / 1e9:.3g} billion, not {quoted(stated)}: "
        "8 billion are 8e9 (on the command line 8B)"
    )
