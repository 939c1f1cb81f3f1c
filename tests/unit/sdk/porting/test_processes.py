"""How a script tells that it is one of several processes."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting import patch
from windtunnel.porting.program import read, read_program

_LAUNCHED = """\
import torch
parser.add_argument("--local_rank", type=int, default=-1, help="of torch.distributed.launch")
args = parser.parse_args()
if args.local_rank != -1:
    model = DistributedDataParallel(model)
"""


def test_the_local_rank_of_torchrun() -> None:
    """It gives none as an argument: DistributedDataParallel stood in a branch that nothing reaches."""
    (found,) = said(_LAUNCHED)
    assert found.startswith("2: no_exchange: torchrun sets LOCAL_RANK in the environment")
    made = changed(_LAUNCHED)
    assert 'type=int, default=int(os.environ.get("LOCAL_RANK", -1)), help=' in made and "import os\n" in made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("args.local_rank != -1", "args.distributed"),
        ("default=-1", "default=0"),
        ("if args", "args.local_rank, args.rank = of_the_environment()\nif args"),
        ("args = parser", "import os; rank = os.environ['LOCAL_RANK']\nargs = parser"),
    ],
)
def test_a_local_rank_that_decides_nothing(old: str, new: str) -> None:
    """Or that the script takes from the environment itself."""
    assert said(_LAUNCHED.replace(old, new)) == []


def test_a_barrier_at_which_nobody_waits() -> None:
    """torch_xla's process group has an empty one: who reads what rank 0 writes came too early."""
    text = HEAD + LOOP + "import torch.distributed as dist\ndist.barrier({})\n"
    for given in ("", "device_ids=[0]"):
        (found,) = said(text.format(given))
        assert found.startswith("14: barrier() does nothing in the process group xla")
        assert changed(text.format(given)).endswith('\nxm.rendezvous("barrier")\n')
    assert said(text.format("group=hosts")) == said(text.format("hosts")) == []
    assert said(text.format("").replace('group("xla")', 'group("gloo")')) == []
    assert said(text.format(""), several=False) == []


def test_what_a_model_gets_where_it_is_made() -> None:
    """As PyTorch's tutorial of DistributedDataParallel has it: with a GPU's number it moves its arguments itself."""
    text = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    text += "net = DDP(model.to(rank), device_ids=[rank])\nloss = net(torch.randn(20, 10), n=torch.ones(\n    2))\n"
    assert len([one for one in said(text) if one.startswith("4: without a GPU number")]) == 2
    made = changed(text)
    moved = ".to(torch_xla.device())"
    assert f"net(torch.randn(20, 10){moved}, n=torch.ones(\n    2){moved})\n" in made
    assert said(made, "Expected XLA tensor") == []
    there = text.replace("20, 10)", "20, 10, device=rank)").replace("torch.ones(\n    2)", "batch")
    assert said(there, "Expected XLA tensor") == []


_BY_URL = """\
import torch
parser.add_argument("--url", default="tcp://10.0.0.1:2345", help="where")
args = parser.parse_args()
if args.url == "env://":
    args.world_size = int(os.environ["WORLD_SIZE"])
model = model.cuda()
"""


def test_an_address_beside_torchruns() -> None:
    """As PyTorch's own ImageNet example has it: it trained on each core for itself."""
    (found,) = said(_BY_URL, "no_exchange")
    assert found.startswith('2: no_exchange: only with "env://" does the script read the number of processes')
    assert 'parser.add_argument("--url", default="env://", help="where")\n' in changed(_BY_URL)
    for old, new in (
        ('== "env://"', "is None"),
        ("tcp://10.0.0.1:2345", "env://"),
        ("model.cuda()", "model"),
    ):
        assert said(_BY_URL.replace(old, new), "no_exchange") == []


_HOGWILD = """\
import torch
import torch.multiprocessing as mp
def steps(model):
    for batch in batches:
        model(batch.cuda()).backward()
def train(model):
    for epoch in range(3):
        steps(model)
def read(files):
    return [load(file) for file in files]
if __name__ == "__main__":
    model.share_memory()
    mp.Process(target=train, args=(model,)).start()
"""


@pytest.mark.parametrize(("target", "told"), [("train", 1), ("steps", 1), ("read", 0), ("other.work", 0)])
def test_processes_of_its_own_that_train(target: str, told: int) -> None:
    """As in Hogwild: they have no NeuronCore. Those that read or write are nobody's business."""
    found = said(_HOGWILD.replace("target=train", f"target={target}"), "has no core")
    assert len(found) == told and all(one.startswith("13: torchrun starts a process") for one in found)


def test_a_group_that_is_bound_to_a_device() -> None:
    """Whatever names its backend; torch raises where that is no GPU."""
    text = HEAD.replace('group("xla")', "group(backend=made(), device_id=device, timeout=t)") + LOOP
    assert said(text, "device_id binds the group")
    assert "init_process_group(backend=made(), timeout=t)\n" in changed(text)
    assert said(changed(text), "device_id") == []


_SPAWNED = """\
import os
import torch_xla.distributed.xla_multiprocessing as xmp
cores = int(os.environ.get("NEURON_RT_NUM_CORES", 32))
if __name__ == "__main__":
    xmp.spawn(main, args=(), nprocs=8)
"""


@pytest.mark.parametrize(
    ("given", "number"),
    [
        ("nprocs=8", "8"),
        ("nprocs=cores", "32"),
        ("nprocs=int(os.getenv('CORES', '4'))", "4"),
        ("nprocs=1", None),
        ("nprocs=args.cores", None),
    ],
)
def test_a_number_of_processes_that_xmp_spawn_refuses(given: str, number: str | None) -> None:
    """torch_xla raises of another than 1, after the rest of the script has been set up."""
    text = _SPAWNED.replace("nprocs=8", given)
    found = said(text, "NEURONCORE_NUM_DEVICES")
    assert [one.partition(" processes")[0] for one in found] == (
        [f"5: xmp.spawn raises for {number}"] if number else []
    )
    if number:
        assert "xmp.spawn(main, args=())\n" in changed(text)


def test_a_number_of_processes_that_an_option_has_unless_it_is_given() -> None:
    """Most scripts for TPUs have 8 there."""
    parser = "parser.add_argument('--n-procs', type=int, default={})\n"
    for usual, told in ((8, True), (1, False), (None, False)):
        text = parser.format(usual) + _SPAWNED.replace("nprocs=8", "nprocs=args.n_procs")
        found = [one for one in said(text) if "NEURONCORE_NUM_DEVICES" in one]
        assert [one.partition(". ")[0] for one in found] == (
            ["6: note: xmp.spawn raises for any number but 1, and args.n_procs is 8 by default"] * told
        )


_SOON = """\
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
{}
def main(index):
    device = xm.xla_device()
if __name__ == "__main__":
    {}
"""


@pytest.mark.parametrize(
    ("before", "spawn", "kind"),
    [
        ("device = xm.xla_device()", "xmp.spawn(main)", "4: "),
        ("xm.set_rng_state(1)", "xmp.spawn(main, start_method='fork')", "4: "),
        ("", "device = torch_xla.device(); xmp.spawn(main)", "8: "),
        ("def start():\n    device = xm.xla_device()\n    xmp.spawn(main)", "start()", "5: "),
        ("device = xm.xla_device()\ndef start():\n    xmp.spawn(main)", "start()", "4: "),
        ("if args.tpu:\n    device = xm.xla_device()", "xmp.spawn(main)", "5: note: "),
        ("device = xm.xla_device()", "xmp.spawn(main, nprocs=1)", ""),
        ("", "xmp.spawn(main); device = xm.xla_device()", ""),
        ("def other():\n    return xm.xla_device()", "xmp.spawn(main)", ""),
        ("if one:\n    device = xm.xla_device()\nelse:\n    xmp.spawn(main)", "pass", ""),
    ],
)
def test_the_device_is_not_used_before_processes_are_started(before: str, spawn: str, kind: str) -> None:
    """Scripts for older torch_xla ask for it where the file begins; xmp.spawn raises of that, here and on trn1."""
    found = [one for one in said(_SOON.format(before, spawn)) if "once the device has been used" in one]
    assert [one.partition("xmp.spawn")[0] for one in found] == ([kind] if kind else [])


def test_a_number_of_processes_by_its_place() -> None:
    """The third argument; and an older torch_xla, which passes over it."""
    text = _SPAWNED.replace("args=(), nprocs=8", "(), 8")
    assert [one[:30] for one in said(text)] == ["5: xmp.spawn raises for 8 proc"]
    assert [one for one in read(script(text), "2.5") if "xmp.spawn" in one.text] == []


def test_a_backend_that_nothing_reads_joins_no_group() -> None:
    """As where the line that would have joined it is a comment by now."""
    text = "import torch\nimport torch_xla\nbackend = 'nccl'\n{}"
    assert [one for one in said(text.format("")) if "nccl" in one] == []
    assert [one for one in said(text.format("join(backend)\n")) if "nccl" in one] != []


@pytest.mark.parametrize(
    ("backend", "is_told"),
    [("config.backend", True), ("backend=h['backend']", True), ("'nccl'", False), ("config.backend", False)],
)
def test_a_backend_that_a_file_of_settings_names(backend: str, is_told: bool) -> None:
    """As HiFi-GAN's JSON says nccl: nothing was said, and the job failed there."""
    text = f"import torch\nmodel.cuda()\ntorch.distributed.init_process_group({backend})\n"
    text += "" if is_told else "default = 'nccl'\n"
    note = "3: note: the process group's backend is what"
    assert any(note in one for one in said(text)) is is_told
    asked = f"{text}print(config.backend == 'gloo')\n"
    assert any(note in one for one in said(asked)) is is_told


def test_a_group_of_a_program_whose_first_file_has_no_torch() -> None:
    """The diff adds the import: without a group each core trained by itself."""
    first = "from work import train\n\n\nif __name__ == '__main__':\n    train()\n"
    work = "import torch\ndef train():\n    for x in data:\n        model(x.cuda()).backward()\n"
    scripts = [script(first), script(work, "work.py")]
    made = patch.ported(scripts[0], read_program(scripts)[scripts[0]]).text.decode()
    assert "import torch\nimport torch_xla.distributed.xla_backend" in made
    assert made.endswith('__main__\':\n    torch.distributed.init_process_group("xla")\n    train()\n')


_FOR_EACH_GPU = """\
import torch
import torch.multiprocessing as mp
from torch.multiprocessing import Process
def train(rank, n):
    for batch in data:
        model(batch.cuda()).backward()
def read(rank):
    print(rank)
def gpus():
    return torch.cuda.device_count()
def start(n):
    mp.spawn(train, args=(n,), nprocs=n)
"""


@pytest.mark.parametrize(
    ("lines", "together"),
    [
        ("n = torch.cuda.device_count()\nmp.spawn(train, nprocs=n, args=(n,))", True),
        ("n = torch.cuda.device_count()\nworld = n * hosts\nmp.spawn(train, (n,), world)", True),
        ("args.n = torch.cuda.device_count()\nstart(args.n)", True),
        ("n = gpus()\nmp.spawn(train, nprocs=n)", True),
        (
            "n = torch.cuda.device_count()\nfor rank in range(n):\n    Process(target=train, args=(rank, n)).start()",
            True,
        ),
        ("n = torch.cuda.device_count()\nall = [Process(target=train) for rank in range(n)]", True),
        ("n = torch.cuda.device_count()\nmp.spawn(train, nprocs=8)", False),
        ("n = torch.cuda.device_count()\nfor rank in range(n):\n    Process(target=read).start()", False),
        ("n = torch.cuda.device_count()\nbatch = 64 // n", False),
    ],
)
def test_a_number_of_gpus_stays_as_long_as_a_process_is_started_for_each(lines: str, together: bool) -> None:
    """Else each of torchrun's processes would start as many: the start needs a decision of yours."""
    text = _FOR_EACH_GPU + lines + "\n"
    if "gpus()" not in lines:
        text = text.replace("return torch.cuda.device_count()", "return 8")
    (told,) = [one for one in said(text) if "device_count() is 0 on trn1" in one]
    assert ("Write it together with what line" in told) is together
    assert ("LOCAL_WORLD_SIZE" not in changed(text)) is together
