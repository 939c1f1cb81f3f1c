"""A text that grows by a token in each pass."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_MODEL = """\
class GPT(torch.nn.Module):
    def generate(self, idx, count):
        for _ in range(count):
            logits = self(idx)
            idx = torch.cat((idx, logits.argmax(-1)), dim=1)
        return idx
torch.manual_seed(0)
model = GPT().to(device)
"""
_CALLED = "text = model.generate(text, 500)\n"


def _told(text: str) -> list[str]:
    return [one.partition(":")[0] for one in said(HEAD + text) if "note: growing_graphs: idx grows" in one]


def test_a_model_that_generates() -> None:
    """As minGPT's samples between its steps."""
    assert _told(_MODEL + LOOP + _CALLED) == ["11"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_CALLED, ""),
        ("generate", "forward"),
        ("torch.cat((idx, ", "torch.cat((other, "),
        ("self(idx)", "work(idx)"),
        ("torch.nn.Module", "Pipeline"),
    ],
)
def test_what_does_not_grow(old: str, new: str) -> None:
    """What nobody calls, a forward pass, what is made anew, what runs no model, and what is none."""
    assert _told((_MODEL + LOOP + _CALLED).replace(old, new)) == []
