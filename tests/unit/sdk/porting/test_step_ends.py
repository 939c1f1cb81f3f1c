"""The end of a step: each loop is judged by itself, and one over data of which nothing is known is ended, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import modules_of, read_program
from windtunnel.porting.script import Script

_VALIDATION = """\
held_out = DataLoader(data)
for batch in held_out:
    total += model(batch.to(device)).sum()
"""
_IN_FUNCTIONS = """\
def train(loader):
    optimizer = torch.optim.SGD(model.parameters())
    for batch in loader:
        loss = model(batch.to(device))
        loss.backward()
        xm.optimizer_step(optimizer)
"""


def _told(text: str) -> list[str]:
    return [one.partition(":")[0] for one in said(text) if "step_without_end" in one]


def test_a_validation_loop_has_an_end_of_its_own() -> None:
    """That of the training loop is not one of this."""
    assert _told(HEAD + LOOP + _VALIDATION) == ["14"]


@pytest.mark.parametrize(
    "ended",
    [
        _VALIDATION.replace("in held_out", "in pl.MpDeviceLoader(held_out, device)"),
        _VALIDATION.replace(
            "held_out = DataLoader(data)", "held_out = pl.MpDeviceLoader(DataLoader(data), device)"
        ),
        _VALIDATION + "    torch_xla.sync()\n",
        _VALIDATION.replace(".sum()", ".sum().item()"),
        _VALIDATION.replace("held_out = DataLoader(data)", "held_out = made(data)"),
        "def seen(n):\n    xm.mark_step()\n" + _VALIDATION + "    seen(1)\n",
    ],
)
def test_what_ends_it(ended: str) -> None:
    """There, in a function that it calls, in what it goes over, or by a read; of what is not known nothing is said."""
    assert _told(HEAD + LOOP + ended) == []


def test_a_validation_loop_that_is_read_needs_no_end() -> None:
    """Nor before the port, when no loop of the script has one; the remark would stay with nothing left to do."""
    unported = LOOP.replace("pl.MpDeviceLoader(loader, device)", "loader").replace(
        "xm.optimizer_step(", "print("
    )
    read = "right += (model(batch.to(device)).cpu() == label).sum().item()"
    text = f"{HEAD}{unported}held_out = DataLoader(data)\nfor batch, label in held_out:\n    {read}\n"
    lines = text.split("\n")
    assert _told(text) == [str(lines.index("for batch in loader:") + 1)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("train(DataLoader(data))", ["9"]),
        ("train(pl.MpDeviceLoader(DataLoader(data), device))", []),
        ("loader = pl.MpDeviceLoader(DataLoader(data), device)\ntrain(loader)", []),
        ("loader = DataLoader(data)\nloader = pl.MpDeviceLoader(loader, device)\ntrain(loader)", []),
    ],
)
def test_a_loader_that_is_handed_on(given: str, told: list[str]) -> None:
    """By what calls the function, not by another loader of its name."""
    assert _told(HEAD + _IN_FUNCTIONS + "xm.mark_step()\n" + given + "\n") == told


@pytest.mark.parametrize(
    ("loop", "ended"),
    [
        ("    loss.backward()\n    optimizer.step()\n    print(i)\n",
         "    xm.optimizer_step(optimizer)\n    torch_xla.sync()\n    print(i)\n"),
        ("    loss.backward()\n    if i % 2:\n        optimizer.step()\n        i += 1\n",
         "        i += 1\n    torch_xla.sync()\n"),
        ("    loss.backward(); optimizer.step()\n",
         "    loss.backward(); xm.optimizer_step(optimizer); torch_xla.sync()\n"),
    ],
)  # fmt: skip
def test_a_loop_over_what_is_not_known_is_ended(loop: str, ended: str) -> None:
    """Behind the optimizer's step, each time that the loop comes there."""
    text = f"import torch\nfor x in load():\n    loss = model(x.cuda())\n{loop}"
    made = changed(text)
    assert made.endswith(ended) and "step_without_end" not in "\n".join(said(made))


_SEVERAL = """\
import torch
opts = [torch.optim.Adam(net.a.parameters()), torch.optim.SGD(net.b.parameters(), lr=1)]
scaler = torch.cuda.amp.GradScaler()
net = torch.nn.parallel.DistributedDataParallel(net.cuda())
def apply(opts):
    for one in opts:
        one.step()
for x in load():
    net(x.cuda()).backward()
    {}
    print(x)
"""


@pytest.mark.parametrize(
    "steps",
    [
        "for o in opts: o.step()",
        "[o.step() for o in opts]",
        "for o in opts: scaler.step(o)\n    scaler.update()",
        "adam.step()\n    generator.step()",
        "apply(opts)",
        "learner.update()",
        "with clock:\n        learner.update()",
    ],
)
def test_several_optimizers_step_before_the_end(steps: str) -> None:
    """In a row, in a loop, in a comprehension, in a function, and by what is not known: else the end would divide the
    step into two graphs.
    """
    made = changed(_SEVERAL.format(steps))
    assert made.endswith("    torch_xla.sync()\n    print(x)\n") and made.count("sync()") == 1
    assert "backward()\n    torch_xla" not in made


def test_a_step_of_which_the_end_is_not_known_is_not_edited() -> None:
    """What is called behind the gradients may step, and a `break` may pass it over: the remark says where."""
    text = _SEVERAL.format("if x > 9: break\n    learner.update()")
    assert "sync()" not in changed(text)
    assert "call torch_xla.sync() at the end of each step" in "\n".join(said(text))


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("for o in (gen, opt): o.step()", True),
        ("for o in held: o.step()", True),
        ("for o in options: o.step()", False),
        ("for o in rates: o.step()", False),
        ("for env in envs: env.step()", False),
    ],
)
def test_optimizers_of_a_loop_exchange_gradients(steps: str, told: bool) -> None:
    """By the name of what holds them, or as torch's are made in it; schedulers and games step, too."""
    text = "import torch\nheld = [torch.optim.SGD(net.parameters())]\nnet.cuda()\n"
    text += "rates = [torch.optim.lr_scheduler.StepLR(o, 1) for o in held]\n"
    assert [one[:2] for one in said(text + steps) if "no_exchange" in one] == ["5:"] * told


def test_a_step_in_a_function_is_ended_behind_its_call() -> None:
    """A `break` behind it does not pass it over."""
    text = (
        "import torch\ndef train(x):\n    model(x.cuda()).backward()\nfor epoch in range(9):\n    train(x)\n"
    )
    assert "    train(x)\n    torch_xla.sync()\n    if once:" in changed(text + "    if once: break\n")


def test_an_end_that_is_looked_up_by_its_name() -> None:
    """As programs for several versions of torch_xla do; of another name nothing is known."""
    text = "import torch, torch_xla, torch_xla.core.xla_model as xm\nsync = {}\nmodel = Net().to('xla')\n"
    text += "for step in range(9):\n    loss = model(batch)\n    loss.backward()\n    sync()\n"
    for made, told in (("getattr(torch_xla, 'sync', None) or getattr(xm, 'mark_step')", 0), ("other", 1)):
        assert len([one for one in said(text.format(made)) if "step_without_end" in one]) == told


@pytest.mark.parametrize(
    ("call", "trains"),
    [
        ("optimizer.step(closure)", True),
        ("values, took = timed(closure)", True),
        ("print(closure())", True),
        ("remember('closure')", False),
    ],
)
def test_a_step_that_is_passed_on(call: str, trains: bool) -> None:
    """As LBFGS calls a closure, and a timer what it times."""
    text = (
        "import torch\nmodel.cuda()\nfor batch in data:\n    def closure():\n        loss = model(batch).sum()\n"
        f"        loss.backward()\n        return loss.item()\n    {call}\n"
    )
    found = said(text)
    assert [one[:2] for one in found if "step_without_end" in one] == ["3:"] * trains
    assert [one[:2] for one in found if "host_read" in one] == ["7:"] * trains
    ended = f"\n    {call}\n    torch_xla.sync()\n" in changed(text + "    print(batch)\n")
    assert ended is trains


_LOOP = """\
import torch, losses
model.cuda()
loss = make("losses.Loss", model)
while True:
    batch = next(batches)
    loss.accumulate(batch)
    optimizer.step()
"""
_LOSS = """\
class Loss:
    def accumulate(self, batch):
        loss = self.model(batch).mean()
        print(loss)
        loss.backward()
"""


@pytest.mark.parametrize(
    ("imported", "other"), [("losses", ""), ("os", ""), ("os", "def accumulate(): pass\n")]
)
def test_gradients_that_another_file_computes(imported: str, other: str, tmp_path: Path) -> None:
    """As in StyleGAN's loop, which makes its loss by a class's name; not if another function has the method's name."""
    (tmp_path / "losses.py").write_text(_LOSS)
    (tmp_path / "more.py").write_text(other)
    script = Script(tmp_path / "train.py", _LOOP.replace("losses", f"{imported}, more", 1).encode())
    found = read_program([script, *modules_of(script)[0]])
    told = {
        (one.path.name, finding.line)
        for one, findings in found.items()
        for finding in findings
        if finding.kind in ("step_without_end", "host_read")
    }
    assert told == (set() if other else {("train.py", 4), ("losses.py", 4)})
