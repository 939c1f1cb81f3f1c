"""What a module's forward pass does in each step: reads of the device, and shapes that the data decide."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read_program

_NET = """\
class Net(torch.nn.Module):
    def __init__(self):
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x, target, size=1):
        hidden = self.layer(x)
        {}
        return hidden
    def keep(self, value):
        return value.mean().item()
def logged(value):
    print(value)
"""
_MADE = "torch.manual_seed(0)\nmodel = Net().to(device)\n"


def _told(line: str, of: str, made: str = _MADE) -> list[str]:
    return said(HEAD + _NET.format(line) + made + LOOP, of)


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("most = x.sum().item()", 12),
        ("print(hidden)", 12),
        ("if hidden.max() > 3: pass", 12),
        ("while torch.any(hidden > 3): hidden = hidden / 2", 12),
        ("assert (hidden == hidden).all() and size", 12),
        ("self.keep(hidden)", 15),
        ("logged(hidden)", 17),
    ],
)
def test_a_forward_pass_that_reads_a_tensor(line: str, at: int) -> None:
    """It waits in each step as the loop would; a note where the model that is trained may be another."""
    (found,) = _told(line, "host_read")
    assert found.startswith(f"{at}: host_read: ") and "in the forward pass of Net: the host waits" in found
    (found,) = _told(line, "host_read", "model = made().to(device)\n")
    assert found.startswith(f"{at}: note: host_read: ") and "if that is of the trained model" in found


def test_a_module_of_the_trained_model() -> None:
    """Its forward pass is part of each step, too."""
    outer = "class Outer(torch.nn.Module):\n    def __init__(self):\n        self.net = Net()\n"
    (found,) = _told("print(hidden)", "host_read", outer + _MADE.replace("Net", "Outer"))
    assert found.startswith("12: host_read: ")


@pytest.mark.parametrize(
    "line",
    [
        "n = int(size)",
        "if size > 3 or x.shape[0] > 2: pass",
        "if target is not None: pass",
        "if size == 'large': pass",
        "p = torch.rand(1).item()",
        "print(hidden.shape)",
        "if not self.training: print(hidden)",
        "if size and hidden.max() > 3: pass",
        "assert (target is not None) == (self.kinds is not None)",
    ],
)
def test_a_forward_pass_that_reads_nothing_of_the_device(line: str) -> None:
    """In each step: what the host knows, and what only some passes do."""
    assert _told(line, "host_read") == []


@pytest.mark.parametrize(
    "line",
    [
        "mask = hidden > 0\n        kept = hidden[mask]",
        "kept = target[hidden[:, 0] == 1]",
        "mask = (target != -1) & (target > 2)\n        kept = hidden[:, ~mask]",
        "kept = hidden[target.bool()]",
        "mask = hidden.gt(0)\n        kept = hidden[mask.unsqueeze(1).expand_as(hidden)]",
        "kept = hidden.masked_select(hidden > 0)",
        "places = torch.where(hidden > 0)",
        "places = hidden.nonzero()",
    ],
)
def test_a_forward_pass_whose_shapes_the_data_decide(line: str) -> None:
    """A note, as the number of elements may happen to be the same in each step."""
    (found,) = _told(line, "as many elements as it finds")
    assert found.startswith(f"{12 + line.count(chr(10))}: note: ")


@pytest.mark.parametrize(
    "line",
    [
        "mask = hidden > 0\n        hidden[mask] = 0",
        "kept = ['a', 'b'][size > 1]",
        "kept = torch.where(hidden > 0, hidden, 0)",
        "kept = names[names == 3]",
        "kinds = table.unique()",
        "kinds = torch.unique_consecutive(torch.tensor([one.shape[-1] for one in x]))",
        "kept = hidden[hidden.argmax(1)]",
    ],
)
def test_shapes_that_stay(line: str) -> None:
    """A write to masked places, an index, what is on the host or of another kind."""
    assert _told(line, "as many elements as it finds") == []


def test_a_mask_and_a_comparison_in_the_loop() -> None:
    """As of a loss without its padding, and of the best loss so far."""
    text = HEAD + LOOP.replace(
        "    loss.backward()",
        "    mask = batch != 0\n    loss = loss[mask].mean()\n    if loss < best: pass\n    loss.backward()",
    )
    masked, compared = said(text, "in each step")
    assert masked.startswith("12: note: loss[mask] gives as many elements as it finds")
    assert compared.startswith("13: host_read: loss < best in each step")


def test_a_function_of_another_file_in_a_forward_pass() -> None:
    """As VITS searches its alignment on the host, in what a module of the program gives."""
    text = HEAD.replace("import", "from align import search\nimport", 1) + _NET + _MADE + LOOP
    text = text.replace("torch.nn.Linear(4, 4)", "Encoder()").format("way = search(2, hidden[0])")
    encoder = "class Encoder(torch.nn.Module):\n    pass\n"
    train = script(encoder + text)
    align = script("def search(count, costs):\n    costs = costs.cpu().numpy()\n", "align.py")
    (found,) = read_program([train, align])[align]
    assert str(found).startswith("2: host_read: costs.cpu() in the forward pass of Net")


_CONTRAST = """\
import torch
class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.model = model.to("cuda")
    def contrast(self, features):
        same = torch.eye(4, dtype=torch.bool).to("cuda")
        return features[~same]
    def train(self, loader):
        for images in loader:
            features = self.model(images)
            loss = self.contrast(features).mean()
            loss.backward()
            self.optimizer.step()
"""


def test_a_mask_in_a_method_that_the_loop_calls() -> None:
    """As SimCLR's loss has it, whose model another file makes."""
    (found,) = said(_CONTRAST, "as many elements")
    assert found.startswith("8: note: features[~same] gives as many elements as it finds")
    assert said(_CONTRAST.replace("[~same]", "[same.int()]"), "as many elements") == []
    assert said(_CONTRAST.replace("self.model(images)", "images"), "as many elements") == []
