"""What is assumed of a described job where nothing is said, and how a report says so."""

from __future__ import annotations

from collections.abc import Sequence

GLOBAL_BATCH = 1024
"""Sequences of a step: what most published Llama and GPT-3 rows of trn1 have."""


def sequences_a_step(batch: int) -> str:
    """``1,024 sequences a step``."""
    return f"{batch:,} sequences a step"


def sequences_of(tokens: int) -> str:
    """``sequences of 8,192 tokens``."""
    return f"sequences of {tokens:,} tokens"


def told(assumed: Sequence[str]) -> tuple[str, ...]:
    """The line of a report's headline; none where all was said."""
    return (f"Not given, so assumed: {'; '.join(assumed)}.",) if assumed else ()
