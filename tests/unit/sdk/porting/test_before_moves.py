"""Work on a batch before its move, which an edit brings onto the device."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import said

_SCRIPT = """\
import random
import numpy as np
import torch
from torch.utils.data import DataLoader
def erase(x):
    for b in range(x.size(0)):
        n = random.randint(0, 10)
        x[b, :, n : n + 5] = 0
    return x
def scaled(x):
    return x.float() * random.uniform(0.9, 1.1)
def moved(x):
    return x.cuda()
loader = DataLoader(data)
for i, (x, y) in enumerate(loader):
    {}
    loss = model(x, y)
    loss.backward()
"""


def _told(*lines: str) -> list[str]:
    return said(_SCRIPT.format("\n    ".join(lines)), "before the move")


@pytest.mark.parametrize(
    "lines",
    [
        ("x = erase(x)", "x, y = x.cuda(), y.cuda()"),
        ("z = erase(x)", "x = z.to('cuda')"),
        ("x = erase(x)", "x, y = (t.cuda() for t in (x, y))"),
        ("x = erase(x).cuda()",),
        ("x = transforms.random_crop(x)", "x = x.cuda()"),
        ("n = np.random.randint(9)", "x = x[:, n:]", "x = x.cuda()"),
        ("n = int(torch.rand(1) * 9)", "x[:, :n] = 0", "x = x.cuda()"),
    ],
)
def test_what_is_drawn_on_the_host_and_runs_on_the_device(lines: tuple[str, ...]) -> None:
    """Before the port, and after it: the move may stay, and the note is still true."""
    (told,) = _told(*lines)
    assert told.startswith(f"{16 + sum('n = ' in one for one in lines)}: note: ")
    assert "Do it in the data set or in the collate function" in told
    made = changed(_SCRIPT.format("\n    ".join(lines)))
    assert len(said(made, "before the move")) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("x, y = x.cuda(), y.cuda()", "x = erase(x)"),
        ("x = scaled(x)", "x = x.cuda()"),
        ("x = x.float().view(len(x), -1)[:, 1:]", "x = x.cuda()"),
        ("x = x[random.randint(0, 3)]", "x = x.cuda()"),
        ("x = moved(x)", "y = y.cuda()"),
        ("print(x.shape, len(y))", "x = x.cuda()"),
        ("y = erase(y)", "x = x.cuda()"),
    ],
)
def test_what_is_the_same_in_each_step(lines: tuple[str, ...]) -> None:
    """Or comes behind the move, or stays on the host: of this nothing is said."""
    assert _told(*lines) == []


def test_a_loop_that_ends_its_steps_itself() -> None:
    """Its loader stays as it is, and the work on the host."""
    assert _told("x = erase(x)", "x = x.cuda()", "torch_xla.sync()") == []
