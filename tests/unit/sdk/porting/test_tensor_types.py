"""torch.cuda.FloatTensor and its like, and the names that older scripts give them."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import said

_NAMED = """\
import torch
cuda = True if torch.cuda.is_available() else False
Tensor = torch.cuda.FloatTensor if cuda else torch.Tensor
LongTensor = torch.cuda.LongTensor if cuda else torch.LongTensor
valid = Variable(Tensor(n, 1).fill_(1.0))
real = Variable((a + b).type(Tensor))
y = LongTensor(labels)
"""
_PORTED = """\
cuda = True
Tensor = torch.FloatTensor
LongTensor = torch.LongTensor
valid = Variable(Tensor(n, 1).to(torch_xla.device()).fill_(1.0))
real = Variable((a + b).to(torch_xla.device(), torch.float))
y = LongTensor(labels).to(torch_xla.device())
"""


def test_a_type_with_a_name() -> None:
    """Of the published GANs: made on the host and moved, where the name made CUDA's tensors, which raises."""
    assert changed(_NAMED) == f"import torch\nimport torch_xla\n{_PORTED}"
    assert [one.partition(":")[0] for one in said(_NAMED)] == ["2", "3", "4"]
    by_if = "if cuda:\n    Tensor = torch.cuda.FloatTensor\nelse:\n    Tensor = torch.FloatTensor\n"
    line = "Tensor = torch.cuda.FloatTensor if cuda else torch.Tensor\n"
    assert "    Tensor = torch.FloatTensor\nelse:" in changed(_NAMED.replace(line, by_if))


@pytest.mark.parametrize(
    "other",
    [
        "make(Tensor)\n",
        "Tensor = torch.HalfTensor\n",
        "Tensor = mine\n",
        "x.type(Tensor, non_blocking=True)\n",
        "def converted(x, Tensor):\n    return x.type(Tensor)\n",
    ],
)
def test_a_name_with_other_uses_stays(other: str) -> None:
    """It is told; half of the edits would be worse than none."""
    assert "torch.cuda.FloatTensor if cuda" in changed(_NAMED + other)
    assert "LongTensor = torch.LongTensor\n" in changed(_NAMED + other)
    assert any(
        one.startswith("3: device_unused: torch.cuda.FloatTensor is for CUDA") for one in said(_NAMED + other)
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.cuda.FloatTensor(3, 4)", "x = torch.FloatTensor(3, 4).to(torch_xla.device())"),
        ("x = x.type(torch.cuda.LongTensor)", "x = x.to(torch_xla.device(), torch.long)"),
        ("x = x.type('torch.cuda.ByteTensor')", "x = x.to(torch_xla.device(), torch.uint8)"),
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')",) * 2,
    ],
)  # fmt: skip
def test_a_type_itself(before: str, after: str) -> None:
    """As it is called, and converted to."""
    assert changed(f"import torch\n{before}\n").endswith(f"{after}\n")
    (found,) = said(f"import torch\n{before}\n")
    assert "is for CUDA: without a GPU it raises" in found


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("from torch.cuda import FloatTensor", "x = FloatTensor(3)", "x = torch.FloatTensor(3).to(torch_xla.device())"),
        ("from torch.cuda import LongTensor as L", "x = x.type(L)", "x = x.to(torch_xla.device(), torch.long)"),
        ("from torch.cuda import FloatTensor", "T = FloatTensor if gpu else torch.Tensor\nx = T(3)",
         "T = torch.FloatTensor\nx = T(3).to(torch_xla.device())"),
    ],
)  # fmt: skip
def test_a_type_that_is_imported(line: str, before: str, after: str) -> None:
    """By its own name, which is gone with its last use."""
    text = f"import torch\n{line}\n{before}\n"
    (found,) = said(text)
    assert (
        found.startswith("3: device_unused: torch.cuda.") and "is for CUDA: without a GPU it raises" in found
    )
    assert changed(text).endswith(f"\n{after}\n") and "torch.cuda" not in changed(text)


def test_a_type_that_is_imported_where_there_is_a_gpu() -> None:
    """On trn1 it is the host's, whose tensors no model on the device takes."""
    text = "import torch\nif torch.cuda.is_available():\n    from torch.cuda import FloatTensor\nelse:\n"
    text += "    from torch import FloatTensor\nx = FloatTensor(3)\n"
    assert [one.partition(":")[0] for one in said(text)] == ["6"]
    assert changed(text).endswith("\nx = torch.FloatTensor(3).to(torch_xla.device())\n")


@pytest.mark.parametrize(
    "line", ["def make(x: FloatTensor) -> FloatTensor:\n    return x", "FloatTensor = mine\nx = FloatTensor(3)",
             "def make(FloatTensor):\n    return FloatTensor(3)", "isinstance(x, FloatTensor)"]
)  # fmt: skip
def test_an_imported_type_that_nothing_makes(line: str) -> None:
    """As an annotation, in a question, or another thing of that name."""
    assert said(f"import torch\nfrom torch.cuda import FloatTensor\n{line}\n") == []


@pytest.mark.parametrize(
    "line", ["A = B = torch.cuda.FloatTensor\nx = A(3)", "kinds = {'f': torch.cuda.FloatTensor}",
             "def make(kind=torch.cuda.FloatTensor):\n    return kind(3)",
             "for kind in (torch.cuda.FloatTensor,): kind(3)"]
)  # fmt: skip
def test_a_type_that_is_told_alone(line: str) -> None:
    """Whose uses are not known: an edit of some would leave tensors on the host."""
    assert changed(f"import torch\nx = y.cuda()\n{line}\n").endswith(f"{line}\n")
    assert said(f"import torch\n{line}\n", "is for CUDA: without a GPU it raises")


@pytest.mark.parametrize(
    "line", ["isinstance(x, torch.cuda.FloatTensor)", "isinstance(x, (torch.FloatTensor, torch.cuda.FloatTensor))",
             "def f(x: torch.cuda.FloatTensor) -> torch.cuda.FloatTensor: ..."]
)  # fmt: skip
def test_a_question_for_a_type(line: str) -> None:
    """It raises nothing, and no more does an annotation."""
    assert said(f"import torch\n{line}\n") == []
