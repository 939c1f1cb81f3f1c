"""Programs for TPUs and GPUs: what they do on a GPU is none of trn1's."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read_program

_GPU = "model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[0])"
_XLA = "model = model.to(device)"


def _remarks(text: str) -> list[str]:
    return [one for one in said(text) if "cuda" in one or "GPU" in one]


@pytest.mark.parametrize(
    "text",
    [
        f"if is_xla():\n    {_XLA}\nelse:\n    {_GPU}\n",
        f"if not args.use_tpu:\n    {_GPU}\nelse:\n    {_XLA}\n",
        f"if args.tpus != 0:\n    {_XLA}\nelse:\n    {_GPU}\n",
        f"if args.device == 'xla':\n    {_XLA}\nelif args.gpu:\n    {_GPU}\n",
        f"if xm is None:\n    {_GPU}\n",
        f"def move(model):\n    if is_xla():\n        return model.to(device)\n    {_GPU}\n    return model\n",
        f"def move(model):\n    {_GPU}\nif is_xla():\n    {_XLA}\nelse:\n    move(model)\n",
    ],
)
def test_the_end_that_other_devices_take_is_left_alone(text: str) -> None:
    """Each of its lines was a finding, of a program that trains on trn1 as it is."""
    whole = f"{HEAD}torch.manual_seed(0)\nmodel = Net()\n{{}}{LOOP}"
    assert _remarks(whole.format(text)) == []
    assert _remarks(whole.format(f"{_GPU}\n")) != []


_NONE_HERE = (
    f"def f():\n    if not torch.cuda.is_available():\n        return None\n    {_GPU}\n    return 1\nf()\n"
)


@pytest.mark.parametrize(
    "text",
    [
        f"if torch.cuda.is_available():\n    {_GPU}\n",
        f"if torch.cuda.is_available() and args.fast:\n    {_GPU}\n",
        _NONE_HERE,
    ],
)
def test_what_a_program_with_a_way_of_its_own_does_where_there_is_a_gpu(text: str) -> None:
    """As OLMo's port does: its nccl and its peak of a GPU's memory were findings. Without such a way they are."""
    whole = f"{HEAD}torch.manual_seed(0)\nmodel = Net()\n{{}}{text}{LOOP}"
    assert _remarks(whole.format(f"if is_xla:\n    {_XLA}\nelse:\n    model.to(other)\n")) == []
    assert _remarks(whole.format("")) != []


@pytest.mark.parametrize(
    "test",
    [
        "device.type == 'cuda'",
        "rank == 0 and is_xla()",
        "args.xla in names",
        "xla_rank != 0",
        "output",
        "xm.is_master_ordinal()",
        "xm.xla_device_hw(device) == 'TPU'",
        "xla_kind == 'TPU'",
    ],
)
def test_another_question_leaves_nothing_to_others(test: str) -> None:
    """Nor does one that more than the device answers."""
    text = f"{HEAD}torch.manual_seed(0)\nmodel = Net()\nif {test}:\n    {_XLA}\nelse:\n    {_GPU}\n{LOOP}"
    assert _remarks(text) != []
    ends = f"    {_GPU}\nelse:\n    {_XLA}\n"
    assert _remarks(f"{HEAD}torch.manual_seed(0)\nmodel = Net()\nif {test}:\n{ends}{LOOP}") != []


def test_a_name_that_is_asked_for_is_a_note() -> None:
    """The default may be another device's; an edit would leave the test without its word."""
    config = "device = 'cuda'\n"
    test = f"if config.device == 'xla':\n    pass\nelse:\n    {_GPU}\n"
    text = f"{HEAD}import config\nmodel = Net().to(device)\n{test}{LOOP}"
    scripts = [script(text), script(config, "config.py")]
    (found,) = read_program(scripts)[scripts[1]]
    assert (found.kind, found.sure, found.edits) == ("device_unused", False, ())


def test_a_program_for_gpus_alone_is_ported() -> None:
    """Without torch_xla no part of it is for trn1 yet."""
    text = "import torch\nmodel = Net()\nif use_tpu:\n    raise ValueError\nelse:\n    model = model.cuda()\n"
    assert [one[:2] for one in said(text)] == ["6:"]


def test_a_function_that_is_handed_on_runs_on_all_devices() -> None:
    """The one that xmp.spawn starts is called for GPUs alone."""
    spawned = "import torch_xla.distributed.xla_multiprocessing as xmp\n"
    ends = "if is_xla():\n    xmp.spawn(main)\nelse:\n    main(0)\n"
    body = f"def main(index):\n    model = Net()\n    {_GPU}\n"
    assert _remarks(f"{HEAD}torch.manual_seed(0)\n{spawned}{body}{ends}{LOOP}") != []
    alone = ends.replace("xmp.spawn(main)", "pass")
    assert _remarks(f"{HEAD}torch.manual_seed(0)\n{spawned}{body}{alone}{LOOP}") == []


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ("os.name == 'nt'", ["6:"]),
        ('sys.platform == "win32"', ["6:"]),
        ("platform.system() == 'Windows'", ["6:"]),
        ("os.name == 'posix'", ["4:", "6:"]),
    ],
)
def test_what_is_done_on_windows_alone(test: str, lines: list[str]) -> None:
    """As StyleGAN2 joins its processes by gloo there: an instance runs Linux."""
    joins = "torch.distributed.init_process_group"
    text = f"import os, torch\nx.cuda()\nif {test}:\n    {joins}('gloo')\nelse:\n    {joins}('nccl')\n"
    assert [one[:2] for one in said(text)][1:] == lines


@pytest.mark.parametrize(
    ("uses", "told"),
    [("for run in runs:\n    print(run)\n", False), ("evaluation.run()\n", True), ("run()\n", True)],
)
def test_a_variable_names_no_function_of_another_file(uses: str, told: bool) -> None:
    """A launcher's ``for run in runs:`` made an evaluation on GPUs, which trn1 never comes to, a finding."""
    first = script(f"import evaluation\nfrom evaluation import *\n{uses}")
    run = "import torch, torch_xla\ndef run():\n    model.to(torch.device('cuda'))\n"
    other = script(run, "evaluation.py")
    found = read_program([first, other])[other]
    assert any(one.kind == "device_unused" for one in found) is told
