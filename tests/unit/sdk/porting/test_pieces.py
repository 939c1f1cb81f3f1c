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
    ],
)
def test_sizes_become_places(split: str, right: str) -> None:
    """`tensor_split` takes where pieces begin; the last one's size follows."""
    text = _MODEL.format(split)
    (found,) = said(text)
    assert found.startswith("4: wrong_split: split() with a list of sizes gives other values on trn1")
    assert changed(text) == _MODEL.format(f"{split.partition(' = ')[0]} = {right}")


@pytest.mark.parametrize(
    "split",
    [
        "q, k = x.split(2, dim=1)",
        "q, k = x.chunk(2, 1)",
        "q, k = x.split([2, 4])",
        "q, k = x.split([2, 4], dim=0)",
        "q, k = torch.tensor_split(x, [2], 1)",
        "q, k = name.split(' ')",
    ],
)
def test_what_is_right(split: str) -> None:
    """Pieces of one size, and along the first dimension."""
    assert not said(_MODEL.format(split))


def test_who_asks_for_functionalization_gets_it() -> None:
    """And with it the right pieces."""
    asked = 'import os\nos.environ["XLA_DISABLE_FUNCTIONALIZATION"] = "0"\n'
    assert not said(asked + _MODEL.format("q, k = x.split([2, 4], 1)"))


def test_tensors_of_the_host() -> None:
    """Outside of a forward pass they may be a dataset's."""
    assert not said("import torch\na, b = torch.ones(4, 6).split([2, 4], 1)\n")
