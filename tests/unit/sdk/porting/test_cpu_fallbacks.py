"""What XLA lacks, so that the CPU computes it."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, STEP, said


@pytest.mark.parametrize(
    "loss",
    ["torch.nn.CTCLoss(blank=0)", "torch.nn.functional.ctc_loss(a, b, c, d)", "torch.ctc_loss(a, b, c, d)"],
)
def test_ctc(loss: str) -> None:
    """Whose backward pass falls back, too."""
    (found,) = said(f"{HEAD}loss = {loss}\n{LOOP}", "cpu_fallback")
    name = loss.partition("(")[0]
    assert (
        f"7: cpu_fallback: {name} has no XLA form: the CPU computes it in each step, forward and backward"
        in found
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("out.median()", True),
        ("torch.multinomial(out.softmax(-1), 1)", True),
        ("torch.multinomial(weights, 1)", False),
        ("numpy.median(out)", False),
        ("out.cpu().median()", False),
        ("times.median()", False),
    ],
)
def test_functions_of_tensors_of_the_device(call: str, told: bool) -> None:
    """In a step; with other tensors the host computes them anyway."""
    found = said(f"import numpy\n{HEAD}{STEP}    seen.append({call})\n", "cpu_fallback")
    assert [one.partition("(")[0].partition(" has")[0] for one in found] == (
        [f"14: note: cpu_fallback: {call.partition('(')[0]}"] * told
    )
