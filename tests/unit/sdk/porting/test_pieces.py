"""`tensor.split` by a list of sizes, which gives other values on trn1."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import said

_MODEL = """\
import torch
class Attention(torch.nn.Module):
    def forward(self, x):
        {}
        return q @ k.T
"""


@pytest.mark.parametrize(
    ("split", "right"),
    [
        ("q, k = self.qkv(x).split([self.q, self.k], dim=-1)", "self.qkv(x).tensor_split([self.q], dim=-1)"),
        ("q, k = torch.split(x, [2, 4], 1)", "torch.tensor_split(x, [2], 1)"),
        ("q, k, v = x.split((a, b, c), dim)", "x.tensor_split([a, a + b], dim)"),
        ("q, k, v = x.split_with_sizes([2 * a, a, 1], 1)", "x.tensor_split([2 * a, 2 * a + a], 1)"),
    ],
)
def test_sizes_become_places(split: str, right: str) -> None:
    """`tensor_split` takes where pieces begin; the last one's size follows."""
    text = _MODEL.format(split)
    (found,) = said(text)
    assert found.startswith("4: wrong_split: split")
    assert "() with a list of sizes gives other values on trn1" in found
    assert changed(text) == _MODEL.format(f"{split.partition(' = ')[0]} = {right}")


@pytest.mark.parametrize(
    "sizes",
    ["*sizes, 2", "sizes.pop(), 2", "a - b, b"],
)
def test_sizes_that_cannot_be_said_twice(sizes: str) -> None:
    """Told, and left as they are."""
    text = _MODEL.format(f"q, k = x.split([{sizes}], 1)")
    assert len(said(text)) == 1 and changed(text) == text


@pytest.mark.parametrize(
    "split",
    [
        "q, k = re.split(['a', 'b'], x, 1)",
        "q, k = 'a b'.split(['a', 'b'], 1)",
        "q, k = x.split(2, dim=1)",
        "q, k = x.split([2, 4])",
        "q, k = x.split([2, 4], dim=0)",
        "q, k = name.split(' ')",
    ],
)
def test_what_is_right(split: str) -> None:
    """Pieces of one size, and along the first dimension."""
    assert not said(f"import re\n{_MODEL.format(split)}")


def test_who_asks_for_functionalization_gets_it() -> None:
    """And with it the right pieces."""
    text = _MODEL.format("q, k = x.split([2, 4], 1)")
    for asked in ('environ["{}"] = "{}"', 'environ.setdefault("{}", "{}")', 'putenv("{}", "{}")'):
        for value in ("0", "1"):
            line = asked.format("XLA_DISABLE_FUNCTIONALIZATION", value)
            assert len(said(f"import os\nos.{line}\n{text}")) == int(value)


def test_tensors_of_the_host() -> None:
    """Outside of a forward pass they may be a dataset's."""
    assert not said("import torch\na, b = torch.ones(4, 6).split([2, 4], 1)\n")
