"""What asks for CUDA's device in places that only some scripts have: the edits leave nothing on the CPU."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting import patch
from windtunnel.porting.program import read, read_program


@pytest.mark.parametrize(
    ("version", "instead"),
    [
        ("2.9", "torch_xla.sync(wait=True)"),
        ("2.7", "torch_xla.sync(); xm.wait_device_ops()"),
        ("2.6", "xm.mark_step(); xm.wait_device_ops()"),
    ],
)
def test_a_wait_runs_what_is_pending(version: str, instead: str) -> None:
    """`xm.wait_device_ops()` alone waits for graphs that run, and runs none: such a timing is of nothing."""
    of = script("import torch\nfor x in data:\n    f(x)\n    torch.cuda.synchronize()  # timed\n")
    assert f"    {instead}  # timed\n" in patch.ported(of, read(of, version), version).text.decode()


@pytest.mark.parametrize(
    ("base", "is_told"), [("object", True), ("torch.nn.Module", True), ("Mine", True), ("Base", False)]
)
def test_a_class_whose_base_was_not_read_may_have_its_device_from_there(base: str, is_told: bool) -> None:
    """As one does that takes its base from a folder that it adds to sys.path."""
    own = "class Mine:\n    pass\n" if base == "Mine" else "from elsewhere import Base\n"
    text = f"import torch, torch_xla\n{own}class Trainer({base}):\n    def train(self):\n"
    text += "        for batch in self.loader:\n            loss = self.model(batch)\n            loss.backward()\n"
    assert bool(said(text + "            self.optimizer.step()\n", "device_unused")) is is_told


@pytest.mark.parametrize(
    ("call", "remark"),
    [
        ("import torch_xla.runtime as xr\nxr.use_spmd()\nxr.use_spmd()", "8: SPMD (use_spmd) is not simulated"),
        ("import torch_xla.distributed.spmd as xs\nxs.mark_sharding(x, m, (0,))", "8: SPMD (mark_sharding)"),
        ("from torch_xla.experimental.custom_kernel import flash_attention\nflash_attention(q, k, v)",
         "8: flash_attention is a Pallas kernel"),
        ("from flash_attn import flash_attention\nmesh.mark_sharding(x)", ""),
    ],
)  # fmt: skip
def test_what_a_rehearsal_refuses_is_told_before_it(call: str, remark: str) -> None:
    """Once, with the way out."""
    found = [one for one in said(f"{HEAD}{call}\n") if "simulated" in one or "Pallas" in one]
    assert [one[: len(remark)] for one in found] == ([remark] if remark else [])


SPMD = """\
import torch, torch_xla
import torch_xla.distributed.parallel_loader as pl
import torch_xla.runtime as xr
device = torch_xla.device()
model = torch.nn.Linear(8, 8).to(device)
optimizer = torch.optim.SGD(model.parameters())
loader = torch.utils.data.DataLoader(data, batch_size=8, drop_last=True)
for batch in pl.MpDeviceLoader(loader, device):
    model(batch).sum().backward()
    optimizer.step()
torch.save(model.state_dict(), "/opt/ml/model/model.pt")
"""


def test_spmd_has_one_process_for_all_cores() -> None:
    """So nothing is to be exchanged between processes, and no file is written twice."""
    found, save = said(SPMD.replace("device =", "xr.use_spmd(); device =", 1))
    assert found.startswith("4: SPMD (use_spmd) is not simulated, nor supported by AWS on Neuron")
    assert save.startswith("11: torch.save: tensors of the device. xm.save moves them")


def test_spmd_that_is_only_an_option_is_not_taken_to_be_on() -> None:
    """Nor if it is in a function that nothing on the way from the first file names."""
    text = SPMD.replace("device =", "if args.spmd: xr.use_spmd()\ndevice =", 1)
    assert said(text, "4: note: SPMD") and said(text, "no_exchange")
    first = script("import helpers\n" + SPMD)
    other = script("import torch_xla.runtime as xr\ndef unused():\n    xr.use_spmd()\n", "helpers.py")
    found = read_program([first, other])
    assert not found[other] and any(one.kind == "no_exchange" for one in found[first])


def test_a_wait_ends_no_step() -> None:
    """The graph grows all the same. What ends one and waits is told for the wait alone."""
    loop = LOOP.replace("pl.MpDeviceLoader(loader, device)", "loader") + "    xm.wait_device_ops()\n"
    unended, wait = said(HEAD + loop)
    assert "step_without_end" in unended and "host_read: xm.wait_device_ops() in each step" in wait
    (found,) = said(HEAD + loop.replace("xm.wait_device_ops()", "torch_xla.sync(wait=True)"))
    assert "host_read: torch_xla.sync(wait=True) in each step: the host waits" in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x):\n    return x.cuda() if torch.cuda.is_available() else x",
         "def f(x):\n    return x.to(torch_xla.device())"),
        ("f(x.cuda() if torch.cuda.is_available() else x)", "f(x.to(torch_xla.device()))"),
        ("x = x.cuda() if y.is_cuda else x", 'x = x.to(torch_xla.device()) if y.device.type == "xla" else x'),
        ("if x.is_cuda:\n    mask = mask.cuda()",
         'if x.device.type == "xla":\n    mask = mask.to(torch_xla.device())'),
        ("n = torch.cuda.device_count()", 'n = int(os.environ.get("LOCAL_WORLD_SIZE", 1))'),
        ("n = batch // torch.cuda.device_count()", 'n = batch // int(os.environ.get("LOCAL_WORLD_SIZE", 1))'),
        ("if processes > torch.cuda.device_count(): raise SystemExit",
         'if processes > int(os.environ.get("LOCAL_WORLD_SIZE", 1)): raise SystemExit'),
        ("for i in range(torch.cuda.device_count()): pass",
         'for i in range(int(os.environ.get("LOCAL_WORLD_SIZE", 1))): pass'),
    ],
)  # fmt: skip
def test_the_device_is_taken_wherever_it_is_asked_for(before: str, after: str) -> None:
    """An edit in a branch that a test leaves dead moves nothing, and 0 GPUs are no divisor."""
    made = changed(f"import torch\n{before}\n")
    assert made.endswith(after + "\n")
    assert ("import os\n" in made) == ("os.environ" in after)


@pytest.mark.parametrize(
    "left",
    [
        "T = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor",
        "if torch.cuda.device_count() > 1: model = wrapped(model)",
        "if not x.is_cuda: x = x.float()",
        "assert x.is_cuda",
        "f(x if torch.cuda.is_available() else y)",
    ],
)
def test_what_would_raise_or_decides_nothing_is_left(left: str) -> None:
    """Made true, these take what only CUDA has."""
    assert changed(f"import torch\n{left}\n") == f"import torch\n{left}\n"


@pytest.mark.parametrize(
    ("imported", "edited"),
    [
        ("from torch.nn.parallel import DistributedDataParallel as DDP", True),
        ("from apex.parallel import DistributedDataParallel as DDP", False),
        ("from distributed import DistributedDataParallel as DDP", False),
    ],
)
def test_only_torchs_wrapper_has_its_arguments(imported: str, edited: bool) -> None:
    """apex's, and those of a script's own file, would raise."""
    made = changed(f"import torch\n{imported}\nmodel = DDP(model.cuda())\n")
    assert ("gradient_as_bucket_view" in made) == edited


def test_what_the_wrapper_may_not_do_on_the_device_is_a_note() -> None:
    """limits.md: torch_xla alone was seen to exchange nothing, so the edit is not all that there is to say."""
    text = "import torch\n" + "model = torch.nn.parallel.DistributedDataParallel(model.cuda())\n" * 2
    (note,) = said(text, "note: no_exchange: on trn1 its gradients may not be exchanged")
    assert "xm.broadcast_master_param(model)" in note and "xm.optimizer_step(optimizer)" in note
    assert said(changed(text), "may not be exchanged") == []


def test_an_epoch_has_several_loops_over_loaders() -> None:
    """The order changes with the epoch, not with the number of the part."""
    loop = (
        "import torch\nfrom torch.utils.data import DataLoader\nfor epoch in range(9):\n    for i in range(5):\n"
        "        loader = DataLoader(data, shuffle=True)\n        for batch in loader:\n"
        "            loss = model(batch.cuda())\n            loss.backward()\n            optimizer.step()\n"
    )
    assert "        loader.sampler.set_epoch(epoch)\n        for batch in" in changed(loop)


def test_a_file_that_is_loaded_to_the_accelerator_by_a_name() -> None:
    """As the ImageNet example has it: torch.load knows no place "xla:0"."""
    text = (
        "import torch\nif use:\n    device = torch.accelerator.current_accelerator()\n"
        "loc = f'{device.type}:{args.gpu}'\nx = torch.load(path, map_location=loc)\n"
    )
    assert changed(text).endswith('x = torch.load(path, map_location="cpu")\n')
    by_text = text.replace("map_location=loc", "map_location=f'{device}:{args.gpu}'")
    assert changed(by_text).endswith('x = torch.load(path, map_location="cpu")\n')
    other = text.replace("torch.accelerator.current_accelerator()", "chosen()")
    assert "map_location=loc" in changed(other)


def test_the_number_of_gpus_of_one_process() -> None:
    """For DataParallel, whose batch it multiplies: a process has one NeuronCore. With spawn it is that of all."""
    text = (
        "import torch\nn = torch.cuda.device_count()\nif n > 1:\n    m = torch.nn.DataParallel(m)\nx.cuda()\n"
    )
    assert "\nn = 1\n" in changed(text)
    assert said(text, "a process has one NeuronCore, and needs no DataParallel. Write 1.")
    spawns = text + "torch.multiprocessing.spawn(main, nprocs=n)\n"
    assert said(spawns, "LOCAL_WORLD_SIZE") and "n = torch.cuda.device_count()" in changed(spawns)


_EITHER = """\
import torch
if args.gpu:
    device = torch.device("cuda")
{other}
def move(x):
    return x.cuda()
"""


@pytest.mark.parametrize(
    ("other", "given"),
    [
        ('else:\n    device = torch.device("cpu")\n', "device"),
        ('elif mps:\n    device = torch.device("mps")\nelse:\n    device = torch.device("cpu")\n', "device"),
        ("", "torch_xla.device()"),
        ('elif mps:\n    device = torch.device("mps")\n', "torch_xla.device()"),
        ("else:\n    work()\n", "torch_xla.device()"),
    ],
)
def test_a_device_that_each_end_of_a_condition_names(other: str, given: str) -> None:
    """Its name is there behind the condition; not where an end gives it nothing."""
    assert f"return x.to({given})\n" in changed(_EITHER.format(other=other))


def test_what_an_and_never_comes_to_is_not_told() -> None:
    """CUDA's memory is asked for where there is CUDA."""
    text = "import torch\nimport torch_xla\nif torch.cuda.is_available() and {}:\n    size = 2\n"
    asked = "torch.cuda.get_device_properties(0).total_memory < 9"
    assert [one for one in said(text.format(asked)) if "get_device_properties" in one] == []
    assert [
        one for one in said(text.replace(" and ", " or ").format(asked)) if "get_device_properties" in one
    ]


def test_what_stands_below_a_test_of_cudas_name_is_not_told() -> None:
    """In a program that has torch_xla's device; the name's own line is."""
    text = "import torch{}\nkind = {}\nif kind {} 'cuda':\n    x = x.pin_memory()\n"
    for kind in ("xm.xla_device()", "args.device", "next(model.parameters()).device.type"):
        found = said(text.format(", torch_xla.core.xla_model as xm", kind, "=="))
        assert [one for one in found if "pinned" in one] == []
    assert [one for one in said(text.format(", torch_xla", "'cuda'", "==")) if one.startswith("2:")]
    assert [one for one in said(text.format(", torch_xla", "args.device", "!=")) if "pinned" in one] != []


_STEP = f"{HEAD.replace('import torch', 'import torch, time')}{LOOP}"


def test_a_wait_in_each_step_is_left_out() -> None:
    """What takes its place would wait, too: its edit was a finding of the next check. Beside a test it is for times."""
    of = script(_STEP.replace("    loss.b", "    torch.cuda.synchronize()\n    loss.b"))
    (found,) = read(of)
    assert "in each step" in found.text and "sync" not in patch.ported(of, [found]).text.decode()
    timed = _STEP.replace("    loss.b", "    if i % 10 == 0:\n        torch.cuda.synchronize()\n    loss.b")
    assert "torch_xla.sync(wait=True)" in patch.ported(script(timed), read(script(timed))).text.decode()


@pytest.mark.parametrize(
    ("declared", "instead"),
    [
        ('parser.add_argument("--device", default="cuda")', 'parser.add_argument("--device", default="xla")'),
        ("parser.add_argument('--device', default='cuda:0', help='cuda or cpu')",
         "parser.add_argument('--device', default=\"xla\", help='cuda or cpu')"),
        ("d: str = field(default='cuda')", 'd: str = field(default="xla")'),
    ],
)  # fmt: skip
def test_an_option_is_the_device_by_default(declared: str, instead: str) -> None:
    """A job without that hyperparameter ended in torch.device("cuda")."""
    assert changed(f"import torch\n{declared}\nmodel.to(args.device)\n").splitlines()[-2] == instead


def test_a_word_of_a_text_is_no_device() -> None:
    """As YOLOv5 takes the number out of "cuda:0". A question of it has an answer."""
    text = "import torch\ndevice = device.replace('cuda:', '')\nmodel = model.cuda()\n"
    assert [one[:2] for one in said(text)] == ["3:"]
    asks = text.replace("device = device.replace('cuda:', '')", "gpu = args.device.startswith('cuda')")
    assert "args.device.startswith('cuda') is False on Trainium: check what depends on it." in said(asks)[0]


def test_an_assertion_keeps_its_other_half() -> None:
    """As where a library must be there."""
    text = "import torch\nmodel.cuda()\nassert has_apex and torch.cuda.is_available(), 'both'\n"
    assert changed(text).endswith("assert has_apex, 'both'\n")
    for alone in ("", "torch.cuda.device_count() >= number and "):
        assert "assert" not in changed(text.replace("has_apex and ", alone))


def test_a_remark_has_one_line() -> None:
    """As editors and linters expect, also of an expression that has several."""
    text = "import torch\ndevice = (torch.device('cuda')\n    if x.is_cuda\n    else torch.device('cpu'))\n"
    assert all("\n" not in one for one in said(text)) and len(said(text)) == 1


@pytest.mark.parametrize(("call", "lines"), [("work(x, device)", []), ("work(x)", ["2:"]), ("", ["2:"])])
def test_a_default_that_every_call_replaces(call: str, lines: list[str]) -> None:
    """As timm's loops have it: nothing is ever put on that device."""
    text = f"import torch, torch_xla\ndef work(x, device=torch.device('cuda')):\n    return x.to(device)\n{call}\n"
    assert [one[:2] for one in said(text, "device_unused")] == lines
    by_name = text.replace("x, device=", "x, *, device=").replace("x, device)", "x, device=device)")
    assert [one[:2] for one in said(by_name, "device_unused")] == lines


def test_a_device_that_a_library_chooses() -> None:
    """PyTorch Geometric's examples since 2025 ask it: without a GPU it is the CPU, in silence."""
    text = (
        "import torch, torch_geometric\ndevice = torch_geometric.device('auto')\nmodel = Net().to(device)\n"
    )
    assert "\ndevice = torch_xla.device()\n" in changed(text)


_TIMED = """\
import time
import torch
model.cuda()
def timed(run):
    if torch.cuda.is_available():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1000
    else:
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("    else:\n        begin = time.perf_counter()\n        run()\n        return", "    return"),
        ("run()", "step()"),  # a function of the script, on both ways
        ("if torch.cuda.is_available():", "if device.type == 'cuda':"),
        ("if torch.cuda.is_available():", "by_gpu = torch.cuda.is_available() and fine\n    if by_gpu:"),
        (
            "        return start.elapsed_time(end) / 1000\n",
            "        return torch.cuda.max_memory_allocated()\n",
        ),
    ],
)
def test_what_only_a_gpu_can_measure_is_left_to_it(old: str, new: str) -> None:
    """The way for other devices works on trn1; on that for CUDA the events raise."""
    text = (_TIMED + "def step():\n    model(x)\n").replace(old, new)
    assert (
        changed(text) == changed("import time\nimport torch\nmodel.cuda()\n") + text.partition("cuda()\n")[2]
    )
    assert [one.split(":")[0] for one in map(str, read(script(text))) if "group" not in one] == ["3"]


def test_a_function_that_returns_where_there_is_no_gpu() -> None:
    """What is behind it does not run on trn1; a device there would be wanted."""
    text = (
        "import torch\ndef used():\n    if not torch.cuda.is_available():\n        return 0\n    return {}\n"
    )
    asked = text.format("torch.cuda.memory_allocated() / 2**30")
    assert changed(asked) == asked and said(asked) == []
    moved = text.format("torch.cuda.memory_allocated() / len(x.cuda())")
    assert "is_available" not in changed(moved)


@pytest.mark.parametrize(
    ("moved", "guard"),
    [
        ("        model.cuda()\n", ""),
        ("        step()\n", ""),
        ("        x = x.to('cuda')\n", "by_gpu = torch.cuda.is_available()\n    if by_gpu:"),
    ],
)
def test_a_way_that_also_trains_is_not_left(moved: str, guard: str) -> None:
    """Left to a GPU, it would not train on the device."""
    text = _TIMED.replace("        run()\n        end", f"{moved}        end") + "def step():\n    model(x)\n"
    text = text.replace("if torch.cuda.is_available():", guard or "if torch.cuda.is_available():")
    assert "torch.cuda.is_available()" not in changed(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("device='cuda'", 'device="xla"'),
        ("*, map_device='cuda:0'", '*, map_device="xla"'),
        ("device=torch.device('cuda')", 'device=torch.device("xla")'),
        ("impl='cuda'", "impl='cuda'"),
    ],
)
def test_a_device_that_is_a_parameters_default(before: str, after: str) -> None:
    """What is moved to it is right then: it is no GPU's number, though EDM also gives it as device_ids."""
    name = before.partition("=")[0].removeprefix("*, ")
    text = f"import torch\ndef train(model, {before}):\n    model.to({name})\n"
    text += f"    return torch.nn.parallel.DistributedDataParallel(model, device_ids=[{name}])\n"
    made = changed(text)
    assert f"def train(model, {after}):\n    model.to({name})\n" in made
    assert ("import torch_xla\n" in made) == (before != after)
    assert not [one for one in said(text) if "number;" in one]
