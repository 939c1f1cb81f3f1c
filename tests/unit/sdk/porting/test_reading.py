"""What a script's text says of its port: each mistake with its line, and nothing of a script that is ported."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from windtunnel.porting.reading import read
from windtunnel.porting.script import Script

ROOT = Path(__file__).resolve().parents[4]
HEAD = """\
import torch, torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
from torch.utils.data import DataLoader, DistributedSampler
torch.distributed.init_process_group("xla")
device = torch_xla.device()
"""
LOOP = """\
optimizer = torch.optim.SGD(model.parameters())
loader = DataLoader(data, sampler=DistributedSampler(data))
for batch in pl.MpDeviceLoader(loader, device):
    loss = model(batch)
    loss.backward()
    xm.optimizer_step(optimizer)
"""


def said(text: str, *, several: bool = True) -> list[str]:
    """The remarks on a script's text."""
    script = Script(Path("train.py"), text.encode())
    return [str(finding) for finding in read(script, several=several)]


def test_a_ported_loop_is_left_alone() -> None:
    """What the cases below change one thing of."""
    assert said(HEAD + LOOP) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("pl.MpDeviceLoader(loader, device)", "loader", 9, "step_without_end: nothing ends a step"),
        ("sampler=DistributedSampler(data)", "shuffle=True", 8, "same_data: every core gets the same"),
        ("sampler=DistributedSampler(data)", "**options", 8, "same_data: every core gets the same"),
        ("xm.optimizer_step(optimizer)", "optimizer.step()", 12, "no_exchange: each core trains a model"),
        ("    xm.opt", "    print(loss.item())\n    xm.opt", 12, "host_read: loss.item() in each step"),
        ("    xm.opt", "    total += float(loss)\n    xm.opt", 12, "host_read: float(loss) in each step"),
        ("    xm.opt", "    torch.nn.utils.clip_grad_norm_(p, 1)\n    xm.opt", 12, "clips each core's own"),
        ("torch_xla.device()", '"cpu"', None, ""),
        ('group("xla")', 'group("nccl")', 5, "backend \"nccl\" does not exist on Trainium"),
        ("model(batch)", "model(batch.cuda())", 10, "device_unused: .cuda() does not exist"),
        ("model(batch)", "model(batch.to('cuda:0'))", 10, "device_unused: device 'cuda:0' does not exist"),
        ("    loss.b", "    torch.cuda.synchronize()\n    loss.b", 11, "xm.wait_device_ops() waits"),
        ("    loss.b", "    torch.cuda.memory_allocated()\n    loss.b", 11, "without a GPU it raises, or answers"),
        ("model(batch)", "torch.nn.DataParallel(model)(batch)", 10, "DataParallel finds no GPU"),
        ("device =", "import logging; logging.basicConfig(level=20)\ndevice =", 6, "Add force=True"),
    ],
)  # fmt: skip
def test_each_mistake_is_found_at_its_line(old: str, new: str, line: int | None, words: str) -> None:
    """One thing wrong, one remark."""
    text = (HEAD + LOOP).replace(old, new, 1)
    assert text != HEAD + LOOP
    remarks = said(text)
    if line is None:  # MpDeviceLoader is named all the same
        assert remarks == []
        return
    (remark,) = remarks
    assert remark.startswith(f"{line}: ") and words in remark


def test_saving_by_every_rank_and_by_one() -> None:
    """Every rank over the others' file is a mistake; behind a test of the rank, or from the host, it is none."""
    save = 'torch.save(model.state_dict(), "m.pt")\n'
    (remark,) = said(HEAD + LOOP + save)
    assert "every rank writes" in remark
    guarded = f"if rank == 0:\n    {save}"
    returned = f"def save(rank):\n    if rank:\n        return\n    {save}"
    moved = 'state = xm._maybe_convert_to_cpu(model.state_dict())\ntorch.save(state, "m.pt")\n'
    own = 'torch.save(model.state_dict(), f"m.{rank}.pt")\n'
    for fine in (guarded, returned, moved, own, 'torch.save(losses, "l.pt")\n'):
        assert said(HEAD + LOOP + fine) == [], fine


def test_a_script_that_has_the_device_and_never_names_it() -> None:
    """It would train on the CPU; the run says so under the same name."""
    text = HEAD.replace("device = torch_xla.device()\n", "") + LOOP.replace(
        "pl.MpDeviceLoader(loader, device)", "loader"
    )
    assert any(
        remark.startswith("8: device_unused: the loop trains on the host's CPU") for remark in said(text)
    )


def test_one_process_needs_no_exchange_and_no_share() -> None:
    """Without torchrun there is one core."""
    text = HEAD.replace('torch.distributed.init_process_group("xla")\n', "") + LOOP.replace(
        "xm.optimizer_step(optimizer)", "optimizer.step()"
    ).replace("sampler=DistributedSampler(data)", "shuffle=True")
    assert len(said(text)) == 3
    assert said(text, several=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "from transformers import Trainer\nTrainer(model).train()\n",
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.manual_seed_all(0)\nimport torch_xla\n",
        "import torch_xla, torch\nif device.type == 'cuda':\n    torch.backends.cudnn.benchmark = True\n",
        '"""Runs on cuda, too."""\nimport torch_xla\nname = "cudagraph"\n',
        "import torch, torch_xla\ntorch.cuda.is_bf16_supported = lambda: True\n",
    ],
)
def test_no_false_alarms(text: str) -> None:
    """What only looks like CUDA, is never reached, or is a library's business."""
    assert said(text) == []


def test_no_false_alarms_in_tutorials_and_examples() -> None:
    """They are ported: nothing is said of them."""
    paths = [
        path for folder in ("tests/docker/tutorials", "examples") for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(paths) > 10
    assert {path.name: read(Script(path)) for path in paths if read(Script(path))} == {}


def test_the_same_terms_as_at_run_time() -> None:
    """Every kind is one of the simulator's diagnostics."""
    advice = (ROOT / "containers/neuron_sim/neuron_sim/diagnostics/advice.py").read_text()
    known = set(re.findall(r'Finding\(\s*"(\w+)"', advice))
    used = {
        node.value
        for path in (ROOT / "sdk/windtunnel/porting").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in known
    }
    assert used == {"device_unused", "step_without_end", "no_exchange", "same_data", "host_read"}
