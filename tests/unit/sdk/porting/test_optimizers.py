"""A model that goes to the CPU in the midst of training: on XLA it comes back with new parameters."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_MADE = """\
torch.manual_seed(0)
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters())
"""
_EPOCHS = """\
def train(model):
    for batch in pl.MpDeviceLoader(loader, device):
        loss = model(batch)
        loss.backward()
        xm.optimizer_step(optimizer)
for epoch in range(3):
    train(model)
"""
_FUNCTION = """\
def save(model):
    model.cpu()
    xm.save(model.state_dict(), path)
    model.to(device)
"""


def _told(text: str) -> list[str]:
    return [one.partition(":")[0] for one in said(HEAD + text) if "leaves the device here" in one]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (_MADE + _EPOCHS + "    torch.save(model.cpu().state_dict(), path)\n    model.to(device)\n", "17"),
        (_MADE + _EPOCHS + '    model = model.to("cpu")\n    xm.save(model.state_dict(), path)\n'
         "    model = model.to(device)\n", "17"),
        (_MADE + _EPOCHS.replace("    train(model)", "    model.to(device)\n    train(model)\n    model.cpu()"), "18"),
        (_MADE + _EPOCHS.replace("step(optimizer)", "step(optimizer)\n        if best:\n            model.cpu()\n"
                                 "            model.cuda()"), "16"),
        (_FUNCTION + _MADE + _EPOCHS + "    save(model)\n", "8"),
        (_MADE + _EPOCHS + "    model.eval().cpu()\n    model.to(device).train()\n", "17"),
        (_MADE + _EPOCHS + '    model.module.to(torch.device("cpu"))\n    model.to(device)\n', "17"),
    ],
)  # fmt: skip
def test_a_model_that_leaves_and_comes_back(text: str, line: str) -> None:
    """The optimizer holds the old ones: the log of a run has the same words, once the time is spent."""
    assert _told(text) == [line]
    main = "def main():\n" + "".join(f"    {one}" for one in text.splitlines(keepends=True))
    assert _told(main) == [str(int(line) + 1)]


@pytest.mark.parametrize(
    "text",
    [
        _MADE + _EPOCHS + "model.cpu()\nsave(model)\nmodel.to(device)\n",
        _MADE + _EPOCHS + "    copy.deepcopy(model).cpu()\n    model.to(device)\n",
        _MADE + _EPOCHS + "    model.to(device)\n    total = loss.cpu()\n    loss.to(device)\n",
        _MADE + _EPOCHS + "    torch.save(model.cpu().state_dict(), path)\n",
        _MADE + _EPOCHS + "    model.cpu()\n    model.to(device)\n    o = torch.optim.SGD(model.parameters())\n",
        _MADE + _EPOCHS.replace("    train(model)", "    model = Net()\n    model.to(device)\n    train(model)\n"
                                "    model.cpu()"),
        _FUNCTION + _MADE + _EPOCHS + "save(model)\n",
    ],
)  # fmt: skip
def test_a_model_that_loses_nothing(text: str) -> None:
    """Once training is over, a copy, a tensor, or where the optimizer or the model is made anew."""
    assert _told(text) == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            "torch.optim.Rprop(model.parameters())",
            "host_read: torch.optim.Rprop reads values of the device in each step",
        ),
        ("torch.optim.ASGD(model.parameters(), capturable=False)", "Pass capturable=True"),
        ("torch.optim.ASGD(model.parameters(), capturable=True)", None),
        ("torch.optim.Adafactor(model.parameters())", "transformers.optimization.Adafactor"),
        ("transformers.Adafactor(model.parameters())", None),
        ("torch.optim.LBFGS(model.parameters())", "graphs grow with its history"),
        ("torch.optim.Muon(model.parameters())", "torch.addmm"),
    ],
)
def test_optimizers_of_torch_that_the_host_decides_for(made: str, told: str | None) -> None:
    """What their text in torch reads, or has on the CPU, in each step: nothing was said before a run."""
    found = said(HEAD + LOOP.replace("torch.optim.SGD(model.parameters())", made))
    assert len(found) == bool(told)
    assert told is None or (found[0].startswith("7: ") and told in found[0])


def test_capturable_is_written() -> None:
    """Behind the arguments that are there, or in the place of False."""
    text = HEAD + LOOP.replace("SGD(model.parameters())", "Rprop(model.parameters(), 0.1)")
    assert "torch.optim.Rprop(model.parameters(), 0.1, capturable=True)\n" in changed(text)
    text = HEAD + LOOP.replace("SGD(model.parameters())", "ASGD(model.parameters(), capturable=False)")
    assert "torch.optim.ASGD(model.parameters(), capturable=True)\n" in changed(text)
    assert said(changed(text)) == []
    several = HEAD + LOOP.replace("SGD(model.parameters())", "Rprop(**options)")
    assert "torch.optim.Rprop(**options)\n" in changed(several)


def test_statistics_of_an_average_are_of_the_host() -> None:
    """`update_bn` divides by the number of batches so far, which is another constant, and graph, each time."""
    (found,) = said(f"{HEAD}{LOOP}torch.optim.swa_utils.update_bn(loader, average)\n")
    assert found.startswith("13: note: update_bn compiles a graph for each batch")
    assert said(f"{HEAD}{LOOP}torch.optim.swa_utils.update_bn(loader, average.cpu())\n") == []
