"""Weights that are tied, and that a move to the device makes several."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read_program

_CLASS = """\
class Net(torch.nn.Module):
    def __init__(self):
        self.embedding = torch.nn.Embedding(9, 4)
        self.head = torch.nn.Linear(4, 9)
        self.head.weight = self.embedding.weight
torch.manual_seed(0)
"""
_TIED = HEAD + _CLASS
_MOVED = "model = Net().to(device)\n"


def _told(text: str) -> list[str]:
    return said(text, "untied_weights")


@pytest.mark.parametrize(
    ("moved", "line"),
    [
        (_MOVED, 13),
        ("model = Net()\nmodel.to(device)\n", 14),
        ("model = Net()\nmodel = model.train().to(device)\n", 14),
        ("net = Net()\nmodel = torch.nn.parallel.DistributedDataParallel(net.to(device))\n", 14),
        ("def build():\n    return Net()\nmodel = build().to(device)\n", 15),
        ("class Two(Base):\n    def __init__(self):\n        self.net = Net()\nmodel = Two().to(device)\n", 16),
        ("def run(net):\n    net.to(device)\nmodel = Net()\nrun(model)\n", 14),
        ("class Trainer:\n    def __init__(self, model):\n        self.model = model.to(device)\nTrainer(Net())\n", 15),
        ("Net().load().to(device)\n", 13),
    ],
)  # fmt: skip
def test_a_tie_in_the_making_of_a_model(moved: str, line: int) -> None:
    """The move stands where the model is made, or handed over."""
    (found,) = _told(_TIED + moved + LOOP)
    assert found.startswith(f"{line}: untied_weights: ")
    assert "line 11 makes self.head.weight and self.embedding.weight one" in found


def test_what_ties_them_again() -> None:
    """By the model's name at the move."""
    (found,) = _told(_TIED + _MOVED + LOOP)
    assert found.endswith("before the optimizer is made: model.head.weight = model.embedding.weight.")


@pytest.mark.parametrize(
    "again",
    [
        f"{_MOVED}model.head.weight = model.embedding.weight\n",
        "model = Net()\n",
        "model = Other().to(device)\n",
        "model = Net()\nbatch.to(device)\n",
        f"{_MOVED}model.tie()\n",
    ],
)
def test_a_tie_that_holds(again: str) -> None:
    """Made behind the move, or not moved."""
    text = _TIED.replace(
        "torch.manual", "    def tie(self):\n        self.head.weight = self.embedding.weight\ntorch.manual"
    )
    assert _told(text + again + LOOP) == []


@pytest.mark.parametrize(
    "line",
    [
        "self.head.weight = linear.weight",
        "self.weight = linear.weight",
        "self.head.weight = torch.nn.Parameter(self.embedding.weight)",
        "self.head.bias = self.embedding.weight.mean()",
        "self.size.weight = 3",
    ],
)
def test_what_ties_nothing(line: str) -> None:
    """A weight that is taken over, or another value."""
    assert _told(_TIED.replace("self.head.weight = self.embedding.weight", line) + _MOVED + LOOP) == []


def test_a_tie_of_a_model_that_is_there() -> None:
    """Outside of a class: before the move it is told, behind it that holds."""
    tie, move = "model.decoder.weight = model.encoder.weight\n", "model = model.to(device)\n"
    (found,) = _told(HEAD + "torch.manual_seed(0)\nmodel = build()\n" + tie + move + LOOP)
    assert found.startswith("10: untied_weights: ") and ": line 9 makes " in found
    assert _told(HEAD + "torch.manual_seed(0)\nmodel = build()\n" + move + tie + LOOP) == []


def test_a_tie_by_a_method_that_init_calls() -> None:
    """As transformers' models have it; under a condition it is a note."""
    text = _TIED.replace(
        "        self.head.weight", "        self.tie()\n    def tie(self):\n        self.head.weight"
    )
    assert len(_told(text + _MOVED + LOOP)) == 1
    text = _TIED.replace("        self.head.weight", "        if tied:\n            self.head.weight")
    assert _told(text + _MOVED + LOOP)[0].startswith("14: note: untied_weights")


def test_a_model_of_another_file() -> None:
    """The remark stands at the move, and names the file of the tie."""
    net = script(f"import torch\n{_CLASS}", "net.py")
    train = script(f"{HEAD}from net import Net\n{_MOVED}{LOOP}")
    (found,) = [one for one in read_program([train, net])[train] if one.kind == "untied_weights"]
    assert found.line == 8 and "line 6 of net.py makes " in found.text


def test_a_library_that_ties_them_again() -> None:
    """And a script of the host alone."""
    assert _told(_TIED.replace("import torch,", "import accelerate, torch,") + _MOVED + LOOP) == []
    assert _told("import torch\n" + _CLASS + _MOVED) == []


@pytest.mark.parametrize(
    ("moved", "after"),
    [
        (_MOVED, f"{_MOVED}model.head.weight = model.embedding.weight\n"),
        (
            "model = Net()\nif fast:\n    model.to(device)  # there\n",
            "model = Net()\nif fast:\n    model.to(device)  # there\n    model.head.weight = model.embedding.weight\n",
        ),
        ("model = wrapped(Net().to(device))\n",) * 2,
        ("model = Net().to(device); work()\n",) * 2,
    ],
)
def test_the_edit_that_ties_them_again(moved: str, after: str) -> None:
    """Where the model has a name and the move a line of its own; then nothing is left to say."""
    made = changed(_TIED + moved + LOOP)
    assert f"{_CLASS}{after}{LOOP}" in made
    assert bool(_told(made)) is (moved == after)


def test_a_tie_under_a_condition_is_no_sure_edit() -> None:
    """It may be none."""
    text = _TIED.replace("        self.head.weight =", "        if tied:\n            self.head.weight =")
    assert "model.head.weight" not in changed(text + _MOVED + LOOP)
