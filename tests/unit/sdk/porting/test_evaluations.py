"""What a script reads for each batch that it evaluates."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read_program

EVALUATED = """\
@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    total = 0
    for x, y in loader:
        out = model(x.to(device))
        loss = criterion(out, y.to(device))
        total += loss.item()
    return total
evaluate(model, held_out, device)
"""


def _told(text: str) -> list[str]:
    return said(HEAD + LOOP + text, "host_read")


def test_a_value_that_is_read_for_each_batch() -> None:
    """A note: the text does not tell how much is evaluated."""
    (found,) = _told(EVALUATED)
    assert found.startswith("20: note: host_read: loss.item() for each batch that is evaluated: ")
    assert "read them once behind the loop" in found


def test_the_reads_of_a_loop_are_told_once() -> None:
    """With the lines of all."""
    line = "        total += loss.item()\n"
    (found,) = _told(EVALUATED.replace(line, f"{line}        all.append(out.argmax(1).cpu().numpy())\n"))
    assert "loss.item() for each batch that is evaluated (also in line 21): " in found
    (found,) = _told(EVALUATED.replace(line, f"{line}        print(out)\n        n += float(out.mean())\n"))
    assert "(also in lines 21, 22): " in found


_COUNTED = """\
        x, y, n = {}
        best = model(x).argmax(-1)
        for b in range(len(best)):
            found = torch.unique_consecutive(best[b])
            found = found[found != 0]
            errors += abs(len(found) - n[b].item())
    return errors
"""


@pytest.mark.parametrize(
    "moved",
    [
        "(t.to(device) for t in (x, y, n))",
        "x.to(device), y.to(device), n.to(device)",
    ],
)
def test_what_an_evaluation_counts(moved: str) -> None:
    """As of texts that are decoded: other shapes for each sample, and a read of a part of the batch that was moved."""
    text = HEAD + LOOP + EVALUATED.partition("        out =")[0] + _COUNTED.format(moved)
    (read,) = [one for one in said(text) if "host_read" in one]
    assert "n[b].item() for each batch that is evaluated" in read
    shapes = [one.partition(" gives as many")[0] for one in said(text, "as many elements")]
    assert [one.partition("note: ")[2] for one in shapes] == [
        "torch.unique_consecutive",
        "found[found != 0]",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("argmax(-1)", "argmax(-1).cpu()"),
        ("best = model(x)", "out = model(x).cpu()\n        best = out"),
    ],
)
def test_what_an_evaluation_counts_on_the_host(old: str, new: str) -> None:
    """Of results that are fetched first nothing changes its shape on the device."""
    counted = _COUNTED.format("(x.cuda(), y, n)").replace(old, new)
    text = HEAD + LOOP + EVALUATED.partition("        out =")[0] + counted
    assert said(text, "as many elements") == []
    assert not any("n[b].item()" in one for one in said(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@torch.no_grad()\n", ""),
        ("    model.eval()\n", ""),
        ("@torch.no_grad()\n", "@torch.inference_mode()\n"),
        ("loss.item()", "(loss * len(x)).tolist()"),
        ("for x, y in loader:", "for index in range(9):"),
        ("x.to(device)", "x"),
    ],
)
def test_however_it_is_written(old: str, new: str) -> None:
    """Gradients are off, or the model is told to evaluate, and something is read."""
    assert any("for each batch that is evaluated" in one for one in _told(EVALUATED.replace(old, new)))


def test_gradients_that_are_off_within_the_loop() -> None:
    """As in a loop beside the training, with the model that is there."""
    text = (
        "for x in held_out:\n    with torch.no_grad():\n        out = model(x.to(device))\n"
        "    n += out.sum().item()\n"
    )
    (found,) = _told(text)
    assert found.startswith("16: note: host_read: out.sum().item() for each batch")
    assert _told(text.replace("torch.no_grad()", "torch.set_grad_enabled(False)"))
    assert not _told(text.replace("torch.no_grad()", "torch.set_grad_enabled(True)"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total += loss.item()", "total += loss"),
        ("    return total", "        if len(x) % 10 == 0: print(loss)\n    return total"),
        ("model.eval()", "model.eval(); model.train()"),
        ("out = model(x.to(device))", "out = other(x)"),
    ],
)
def test_an_evaluation_that_reads_nothing(old: str, new: str) -> None:
    """Or is none."""
    text = EVALUATED.replace("total += loss.item()", "total += loss") if "print" in new else EVALUATED
    if "train" in new:
        text = text.replace("@torch.no_grad()\n", "")
    assert _told(text.replace(old, new)) == []


def test_what_is_read_behind_the_loop() -> None:
    """As the remark asks for."""
    text = EVALUATED.replace("total += loss.item()", "total += loss").replace(
        "return total", "return total.item()"
    )
    assert _told(text) == []


def test_a_script_that_only_evaluates() -> None:
    """Its model is on the device, and nothing trains."""
    assert [one[:2] for one in said(HEAD + EVALUATED, "host_read")] == ["14"]
    assert said("import torch\n" + EVALUATED.replace("device", "where"), "host_read") == []


def test_a_model_that_was_moved_elsewhere() -> None:
    """Neither function names a device: they are handed the model, or it is the module's."""
    steps = (
        "def train(net):\n    for x in batches():\n        loss = net(x).sum()\n        loss.backward()\n"
        "        total += loss.item()\n"
    )
    begin = "import torch\nimport torch_xla.core.xla_model as xm\n"
    by_hand = f"{begin}model = Net().to(xm.xla_device())\n{steps}train(model)\n"
    at_home = f"{begin}net = Net()\nnet.to(xm.xla_device())\n{steps.replace('(net)', '()', 1)}train()\n"
    for text in (by_hand, at_home):
        assert len(said(text, "host_read")) == 1
    assert said(by_hand.replace("train(model)", "train(Net())"), "host_read") == []
    engine = script(EVALUATED.replace(".to(device)", "").replace(", device", ""), "engine.py")
    train = script(
        f"{begin}from engine import evaluate\nmodel = Net().to(xm.xla_device())\nevaluate(model, data)\n"
    )
    (found,) = (one for one in read_program([train, engine])[engine] if one.kind == "host_read")
    assert found.line == 8


@pytest.mark.parametrize(
    ("loader", "is_told"),
    [
        ("DataLoader(held_out, batch_size=8)", True),
        ("pl.MpDeviceLoader(DataLoader(held_out, batch_size=8), device)", True),
        ("DataLoader(held_out, batch_size=8, drop_last=True)", False),
        ("DataLoader(held_out, batch_size=1)", False),
        ("DataLoader(held_out, batch_size=8, collate_fn=padded, drop_last=args.drop)", False),
        ("batches()", False),
    ],
)
def test_a_last_batch_that_is_evaluated(loader: str, is_told: bool) -> None:
    """It is a graph more, as in training; left out, its samples are not evaluated."""
    text = (
        HEAD
        + LOOP
        + f"tested = {loader}\n"
        + EVALUATED.replace("evaluate(model, held_out", "evaluate(model, tested")
    )
    for one in (text, text.replace("in loader:\n        out", "in tested:\n        out")):
        found = said(one, "ragged_batch")
        assert [line.split(": ")[:3] for line in found] == [["13", "note", "ragged_batch"]] * is_told
        assert all(
            "of a core that" not in line and "its samples are never evaluated" in line for line in found
        )


def test_a_loader_that_is_trained_and_evaluated_is_told_once() -> None:
    text = (
        HEAD + LOOP.replace("(data, sampler", "(data, 8, sampler") + EVALUATED.replace("held_out", "loader")
    )
    (found,) = said(text, "ragged_batch")
    assert "Pass drop_last=True" in found
