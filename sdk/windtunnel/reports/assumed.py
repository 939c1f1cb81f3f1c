"""Defaults for what the description of a job leaves out, and the line of a report that names them."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf import Architecture

GLOBAL_BATCH = 1024
"""Default global batch, in sequences a step: that of most published Llama and GPT-3 rows on trn1."""


def sequences_a_step(batch: int) -> str:
    """Write a global batch as ``1,024 sequences a step``."""
    return f"{batch:,} sequences a step"


def sequences_of(tokens: int) -> str:
    """``sequences of 8,192 tokens``."""
    return f"sequences of {tokens:,} tokens"


def of_the_model(model: Architecture, length: int) -> list[str]:
    """What is assumed of a model's attention where sequences of ``length`` tokens are longer than it is made for."""
    found = []
    if model.positions is not None and length > model.positions:
        found.append(f"positions for {length:,} tokens (the model has {model.positions:,})")
    if model.window is not None and length > model.window:
        found.append(f"full attention (the model's window of {model.window:,} tokens takes less)")
    return found


def told(assumed: Sequence[str]) -> tuple[str, ...]:
    """The headline's line that names what was assumed; empty where the caller stated everything."""
    return (f"Not given, so assumed: {'; '.join(assumed)}.",) if assumed else ()
