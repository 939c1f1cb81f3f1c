"""An optimizer made before the model goes to the device, where functions and files lie between the two."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import modules_of, read_program
from windtunnel.porting.script import Script

_MAKER = """\
def create_optimizer(net, config):
    groups = [p for name, p in net.named_parameters()]
    return torch.optim.AdamW(groups, lr=config.lr)
"""
_MADE = """\
def load(config):
    torch.manual_seed(0)
    model = Net(config)
    optimizer = create_optimizer(model, config)
    return model, optimizer
"""
_TRAINER = """\
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model.to(torch_xla.device())
        self.optimizer = optimizer
    def train(self, loader):
        for batch in pl.MpDeviceLoader(loader, torch_xla.device()):
            self.model(batch).sum().backward()
            xm.optimizer_step(self.optimizer)
"""
_RUN = "model, optimizer = load(config)\nTrainer(model, optimizer).train(loader)\n"


def _told(text: str) -> list[str]:
    return said(text, "optimizer_before_move")


def test_an_optimizer_that_a_function_makes() -> None:
    """Of the model that it is given, as minGPT's configuration has it."""
    (remark,) = _told(HEAD + _MAKER + _MADE + _TRAINER + _RUN)
    assert remark.startswith("13: optimizer_before_move: ") and "in line 17, which" in remark


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Net(config)", "Net(config).to(device)"),
        ("    groups", "    net.to(device)\n    groups"),
        ("torch.optim.AdamW(groups, lr=config.lr)", "groups"),
        ("torch.optim.AdamW", "torch.optim.lr_scheduler.StepLR"),
        ("create_optimizer", "create_both"),
        ("= optimizer\n    def", "= create_optimizer(self.model, 1)\n    def"),
    ],
)
def test_what_makes_none_too_soon(old: str, new: str) -> None:
    """The model is on its device by then, nothing makes an optimizer of it, or another is made behind the move."""
    assert _told((HEAD + _MAKER + _MADE + _TRAINER + _RUN).replace(old, new)) == []


def test_a_trainer_in_a_file_of_its_own(tmp_path: Path) -> None:
    """The remark names that file."""
    (tmp_path / "trainer.py").write_text(HEAD + _TRAINER)
    (tmp_path / "train.py").write_text(f"{HEAD}from trainer import Trainer\n{_MAKER}{_MADE}{_RUN}")
    script = Script(tmp_path / "train.py")
    found = [str(one) for each in read_program([script, *modules_of(script)[0]]).values() for one in each]
    (remark,) = [one for one in found if "optimizer_before_move" in one]
    assert remark.startswith("14: ") and "in line 9 of trainer.py, which" in remark


_MOVE = "    model.to(device)\n"


def test_the_edit_that_moves_the_model_first() -> None:
    """The later move, which the trainer keeps, finds it there; nothing is left to say."""
    text = HEAD + _MAKER + _MADE + _TRAINER + _RUN
    made = changed(text)
    assert f"{_MOVE}    optimizer = create_optimizer(model, config)\n" in made
    assert _told(made) == []
    conditional = text.replace("self.model = model.to", "if config:\n            self.model = model.to")
    assert _told(conditional) and _MOVE not in changed(conditional)


def test_the_edit_where_one_function_does_both() -> None:
    """A name of the device is used where it is one."""
    made, steps = LOOP.split("\n", 1)
    text = f"{HEAD}model = Net()\n{made}\nmodel.to(device)\n{steps}"
    assert f"model = Net()\nmodel.to(device)\n{made}\n" in changed(text)
    assert _told(changed(text)) == []


_OWN = """\
class Layer(torch.nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.opt = torch.optim.Adam(self.parameters())
    def fit(self, loader):
        for batch in pl.MpDeviceLoader(loader, device):
            self(batch).sum().backward()
            xm.optimizer_step(self.opt)
torch.manual_seed(0)
"""


@pytest.mark.parametrize(
    ("moved", "told"),
    [
        ("layers = [Layer(4).to(device) for _ in range(3)]\n", 1),
        ("layer = Layer(4)\nlayer.to(device)\n", 1),
        (
            "class Net(torch.nn.Module):\n    def __init__(self):\n        self.a = Layer(4)\nnet = Net().to(device)\n",
            1,
        ),
        ("layer = Layer(4)\nother.to(device)\n", 0),
    ],
)
def test_a_module_that_makes_an_optimizer_of_its_own(moved: str, told: int) -> None:
    """It is moved once it is made, with what holds it or alone."""
    found = _told(HEAD + _OWN + moved)
    assert len(found) == told and all(one.startswith("10: ") for one in found)
    there = _OWN.replace("n, n)\n", "n, n)\n        self.to(device)\n")
    assert _told(HEAD + there + moved) == []
