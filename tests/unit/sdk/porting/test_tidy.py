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
        f"on = mine() and {_ASKED}\nx = x.cuda()\n",
        f"if mine() and not {_ASKED}:\n    y = 0\n    x = x.cuda()\n",
    ],
)
def test_a_condition_that_stays(text: str) -> None:
    """Where its lines are not only code, the function would be another, or the script's own words are the same."""
    text = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    made = changed(f"{_HEAD}def f(x):\n{text}")
    assert (
        "if True:\n        x = x.to(torch_xla.device())\n" in made
        or "and True\n" in made
        or "and not True:" in made
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"on = not args.cpu and {_ASKED}\nx.cuda()\n", "on = not args.cpu\nx.to(torch_xla.device())\n"),
        (f"on = args.cuda and {_ASKED}\nx.cuda()\n", "on = args.cuda\nx.to(torch_xla.device())\n"),
        (f"if mine() and {_ASKED}:\n    x.cuda()\n", "if mine():\n    x.to(torch_xla.device())\n"),
        (f"if {_ASKED} and (a or b):\n    x.cuda()\n", "if (a or b):\n    x.to(torch_xla.device())\n"),
        (f"if (a or\n        b) and {_ASKED}:\n    x.cuda()\n",
         "if (a or\n        b):\n    x.to(torch_xla.device())\n"),
        (f"if a and {_ASKED} and b:\n    x.cuda()\n", "if a and b:\n    x.to(torch_xla.device())\n"),
        (f"if not {_ASKED} or a:\n    x = 1\nelse:\n    x.cuda()\n",
         "if a:\n    x = 1\nelse:\n    x.to(torch_xla.device())\n"),
        (f"if args.cuda and not {_ASKED}:\n    raise ValueError\nx.cuda()\n", "x.to(torch_xla.device())\n"),
        (f"if a:\n    b()\nelif c and not {_ASKED}:\n    raise ValueError\nelse:\n    x.cuda()\n",
         "if a:\n    b()\nelse:\n    x.to(torch_xla.device())\n"),
        (f"if a:\n    b()\nelif not {_ASKED}:\n    c()\nelif d:\n    x.cuda()\n",
         "if a:\n    b()\nelif d:\n    x.to(torch_xla.device())\n"),
        (f"if a:\n    x.cuda()\nelif not {_ASKED}:\n    raise ValueError\n", "if a:\n    x.to(torch_xla.device())\n"),
        (f"d = 'bf16' if {_ASKED} and torch.cuda.is_bf16_supported() else 'fp16'\nx.cuda()\n",
         "d = 'bf16'\nx.to(torch_xla.device())\n"),
    ],
)  # fmt: skip
def test_a_part_of_a_condition_that_is_true(before: str, after: str) -> None:
    """The rest stands alone; `mine()` might give more than a truth, and is called all the same."""
    assert changed(_HEAD + before) in (_HEAD + after, _XLA + after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if gpu is not None:\n    torch.cuda.set_device(gpu)\nx.cuda()\n", "x.to(torch_xla.device())\n"),
        (
            "if a:\n    b()\nelif c:\n    torch.cuda.empty_cache()\nx.cuda()\n",
            "if a:\n    b()\nx.to(torch_xla.device())\n",
        ),
        ("if a():\n    torch.cuda.init()\nx.cuda()\n", "if a():\n    pass\nx.to(torch_xla.device())\n"),
        (
            "if a:\n    torch.cuda.init()\nelse:\n    b()\nx.cuda()\n",
            "if a:\n    pass\nelse:\n    b()\nx.to(torch_xla.device())\n",
        ),
        (
            "if a:\n    pass\nif b:\n    torch.cuda.init()\nx.cuda()\n",
            "if a:\n    pass\nif b:\n    pass\nx.to(torch_xla.device())\n",
        ),
    ],
)
def test_a_condition_that_decides_on_nothing(before: str, after: str) -> None:
    """It goes with what it decided on, unless something is called to find out, or the script has such itself."""
    assert changed(_HEAD + before) in (_HEAD + after, _XLA + after)


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
            "x.to(torch_xla.device())\n",
        ),
    ],
)
def test_a_name_that_is_given_to_itself(before: str, after: str) -> None:
    """Of a call that is left out: the whole line goes."""
    assert changed(f"import torch\nfrom torch import nn\n{before}").endswith(f"\n{after}")
