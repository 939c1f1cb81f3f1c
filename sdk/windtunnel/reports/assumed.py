"""Defaults for what the description of a job leaves out, and the line of a report that names them."""

from __future__ import annotations

from collections.abc import Sequence

GLOBAL_BATCH = 1024
"""Default global batch, in sequences a step: that of most published Llama and GPT-3 rows on trn1."""


def sequences_a_step(batch: int) -> str:
    """Write a global batch as ``1,024 sequences a step``."""
    return f"{batch:,} sequences a step"


def sequences_of(tokens: int) -> str:
    """``sequences of 8,192 tokens``."""
    return f"sequences of {tokens:,} tokens"


def told(assumed: Sequence[str]) -> tuple[str, ...]:
    """The headline's line that names what was assumed; empty where the caller stated everything."""
    return (f"Not given, so assumed: {'; '.join(assumed)}.",) if assumed else ()
