"""What a core adds up of its share of the data, divided by the number of all samples."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, said

TEXT = (
    HEAD
    + """\
def train(model, loader, optimizer):
    right, seen = 0, 0
    for x, y in pl.MpDeviceLoader(loader, device):
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        xm.optimizer_step(optimizer)
        right += (out.argmax(1) == y).sum()
        seen += len(y)
    return right / len(loader.dataset)
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters())
train_loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data), drop_last=True)
for epoch in range(3):
    train_loader.sampler.set_epoch(epoch)
    accuracy = train(model, train_loader, optimizer)
"""
)
SAID = "too small by the number of cores"


def test_a_sum_of_a_share_by_the_length_of_all() -> None:
    """It printed 1 / N of the accuracy, and looked like a model that does not learn."""
    (found,) = said(TEXT, SAID)
    assert found.startswith(
        "16: note: with a DistributedSampler right / len(loader.dataset) is too small by the "
    )
    assert "xm.all_reduce(xm.REDUCE_SUM, ...)" in found


def test_of_the_sampler_that_the_diff_adds() -> None:
    """The script was right before."""
    plain = TEXT.replace(", DistributedSampler", "").replace(
        "sampler=DistributedSampler(data)", "shuffle=True"
    )
    plain = plain.replace("    train_loader.sampler.set_epoch(epoch)\n", "")
    assert len(said(plain, "every core gets the same batches")) == 1
    (found,) = said(plain, SAID)
    assert found.startswith("16: ")
    assert said(plain, SAID, several=False) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("right / len", "100.0 * right / len"),
        ("right / len", "right.item() / len"),
        (
            "    return right / len(loader.dataset)",
            "    number = len(loader.dataset)\n    return right / number",
        ),
        ("sampler=DistributedSampler(data)", "sampler=own"),
    ],
)
def test_however_it_is_written(old: str, new: str) -> None:
    """With a name between, or in percent."""
    text = TEXT.replace(old, new).replace("torch.manual", "own = DistributedSampler(data)\ntorch.manual")
    assert len(said(text, SAID)) == 1


def test_by_the_data_set_itself() -> None:
    """Where loader and loop are in one function."""
    lines = TEXT[TEXT.index("    for x") : TEXT.index("    return")].replace("\n    ", "\n")[4:]
    lines = lines.replace("(loader", "(train_loader")
    text = (
        TEXT[: TEXT.index("def train")]
        + "right = seen = 0\n"
        + TEXT[TEXT.index("torch.manual") : TEXT.index("for epoch")]
    )
    assert len(said(f"{text}{lines}print(right / len(data))\n", SAID)) == 1
    assert said(f"{text}{lines}print(right / len(other))\n", SAID) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("right / len(loader.dataset)", "right / seen"),
        ("right / len(loader.dataset)", "right / len(held_out.dataset)"),
        ("right / len(loader.dataset)", "batches / len(loader.dataset)"),
        ("right / len(loader.dataset)", "seen * len(loader.dataset)"),
        ("right / len", "xm.all_reduce(xm.REDUCE_SUM, right) / len"),
        ("right / len", "xm.mesh_reduce('right', right, sum) / len"),
        ("sampler=DistributedSampler(data)", "sampler=mine(data)"),
        ("sampler=DistributedSampler(data)", "sampler=DistributedSampler(data) if several else None"),
    ],
)
def test_what_may_be_right(old: str, new: str) -> None:
    """A share's own number, another data set, a sum that is exchanged, a sampler that may divide nothing."""
    assert said(TEXT.replace(old, new), SAID) == []
