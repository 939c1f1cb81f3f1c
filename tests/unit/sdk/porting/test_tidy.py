"""What the edits make needless goes with them: ``if True:``, ``model = model``."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed

_HEAD = "import torch\n"
_ASKED = "torch.cuda.is_available()"
_XLA = "import torch\nimport torch_xla\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"if {_ASKED}:\n    x = x.cuda()\nwork()\n", "x = x.to(torch_xla.device())\nwork()\n"),
        (f"if {_ASKED}:  # fast\n    # there\n    x = x.cuda()  # it\n\n    y = f(\n        x\n    )\n",
         "# fast\n# there\nx = x.to(torch_xla.device())  # it\n\ny = f(\n    x\n)\n"),
        (f"if {_ASKED}: x = x.cuda(); y()\n", "x = x.to(torch_xla.device()); y()\n"),
        (f"if {_ASKED}:\n    d = torch.device('cuda')\nelif mps():\n    d = torch.device('mps')\nelse:\n"
         "    # slow\n    d = torch.device('cpu')\nwork(d)\n", "d = torch_xla.device()\nwork(d)\n"),
        (f"if args.cpu:\n    d = 'cpu'\nelif {_ASKED}:\n    d = torch.device('cuda')\nelse:\n    d = 'cpu'\n",
         "if args.cpu:\n    d = 'cpu'\nelse:\n    d = torch_xla.device()\n"),
        (f"if a:\n\tif {_ASKED}:\n\t\tx = x.cuda()\n", "if a:\n\tx = x.to(torch_xla.device())\n"),
        (f"if {_ASKED}:\n    if {_ASKED}:\n        x = x.cuda()\n", "x = x.to(torch_xla.device())\n"),
        (f"def f(x):\n    if not {_ASKED}:\n        raise ValueError\n    return x.cuda()\n",
         "def f(x):\n    return x.to(torch_xla.device())\n"),
        (f"def f(x):\n    if not {_ASKED}:\n        raise ValueError\n", "def f(x):\n    pass\n"),
        (f"if not {_ASKED}:\n    x = work()\nelse:\n    x = x.cuda()\n", "x = x.to(torch_xla.device())\n"),
        (f"x = (x.cuda() if {_ASKED} else x)\n", "x = (x.to(torch_xla.device()))\n"),
        (f"on = True if {_ASKED} else False\nx.cuda()\n", "on = True\nx.to(torch_xla.device())\n"),
    ],
)  # fmt: skip
def test_a_condition_that_is_true(before: str, after: str) -> None:
    """What it decides on stands there alone, as far in as the condition did; what never runs is gone."""
    assert changed(_HEAD + before) in (_HEAD + after, _XLA + after)


@pytest.mark.parametrize(
    "text",
    [
        f'if {_ASKED}:\n    x = x.cuda()\n    y = """\n    a\n    """\n',
        f"if {_ASKED}:\n    x = x.cuda()\nelse:\n    yield x\n",
        f"if {_ASKED}:\n    x = x.cuda()\nif True:\n    work()\n",
        f"if mine() and {_ASKED}:\n    x = x.cuda()\n",
    ],
)
def test_a_condition_that_stays(text: str) -> None:
    """Where its lines are not only code, the function would be another, or the script's own words are the same."""
    text = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    made = changed(f"{_HEAD}def f(x):\n{text}")
    assert "if True:\n        x = x.to(torch_xla.device())\n" in made or "and True:" in made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model = torch.compile(model)\nx.cuda()\n", "x.to(torch_xla.device())\n"),
        ("self.net = torch.compile(self.net)\nx.cuda()\n", "x.to(torch_xla.device())\n"),
        (
            "model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()\n",
            "model = model.to(torch_xla.device())\n",
        ),
        ("net = torch.compile(model)\nx.cuda()\n", "net = model\nx.to(torch_xla.device())\n"),
        ("a = model = torch.compile(model)\nx.cuda()\n", "a = model = model\nx.to(torch_xla.device())\n"),
        (
            "if fast:\n    model = torch.compile(model)\nx.cuda()\n",
            "if fast:\n    pass\nx.to(torch_xla.device())\n",
        ),
    ],
)
def test_a_name_that_is_given_to_itself(before: str, after: str) -> None:
    """Of a call that is left out: the whole line goes."""
    assert changed(f"import torch\nfrom torch import nn\n{before}").endswith(f"\n{after}")
