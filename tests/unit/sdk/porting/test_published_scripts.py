"""What published scripts for GPUs have that no word of CUDA tells, and that a port's diff left wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.finding import Edit
from windtunnel.porting.patch import ported
from windtunnel.porting.program import modules_of, read, read_program
from windtunnel.porting.script import Script

_BY_NUMBER = """\
import torch
from torch.utils.data import DataLoader
class Trainer:
    def __init__(self, model, data: DataLoader, gpu_id):
        self.gpu_id = gpu_id
        self.model = model.to(gpu_id)
        self.data = data
    def train(self):
        for batch in self.data:
            loss = self.model(batch.to(self.gpu_id)).sum()
            loss.backward()
            optimizer.step()
def loader():
    return DataLoader(data, batch_size=8, shuffle=True)
Trainer(model, loader(), 0).train()
"""


def test_a_gpu_that_is_a_number_alone() -> None:
    """Nothing in it is called CUDA, as in PyTorch's own DDP series; its loader comes through a class's arguments."""
    remarks = "\n".join(said(_BY_NUMBER))
    for words in (
        "6: device_unused: device gpu_id is a GPU's number",
        "9: step_without_end",
        "10: device_unused: device self.gpu_id is a GPU's number",
        "12: no_exchange",
        "14: same_data",
    ):
        assert words in remarks
    assert "device_unused: device 0 is a GPU's number" in "\n".join(
        said(_BY_NUMBER.replace("to(gpu_id)", "to(0)"))
    )
    ported = HEAD + LOOP.replace(
        "model(batch)", "model(batch.to(gpu))"
    )  # its own name for torch_xla's device
    assert said(ported) == []


@pytest.mark.parametrize(
    "made",
    [
        "model = AutoModelForSequenceClassification.from_pretrained(name).to(device)\n",
        "model = AutoModelForCausalLM.from_pretrained(name)\nmodel = get_peft_model(AutoModel(), lora).to(device)\n",
    ],
)
def test_weights_that_no_file_has(made: str) -> None:
    """A new head, an adapter: a note, as the file may have been trained for the same. A tokenizer is no model."""
    (found,) = said(HEAD + "tokenizer = AutoTokenizer.from_pretrained(name)\n" + made + LOOP)
    assert (
        "note: unequal_weights: each core draws its own initial weights of model (those that no file has)"
        in found
    )


_TRAINER = """
from transformers import AutoModel, Trainer, set_seed
{}trainer = Trainer(model={}, args=args)
trainer.train()
"""
_ACCELERATE = """
import torch
from accelerate import Accelerator
accelerator = Accelerator()
{}optimizer = torch.optim.AdamW(model.parameters())
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    optimizer.zero_grad()
    accelerator.backward(model(batch).loss)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (_TRAINER.format("model = AutoModelForCausalLM.from_config(config)\n", "model"), ["sure"]),
        (
            _TRAINER.format("model = AutoModelForTokenClassification.from_pretrained(name)\n", "model"),
            ["note"],
        ),
        (_TRAINER.format("model = AutoModelForCausalLM.from_pretrained(name)\n", "model"), []),
        (_TRAINER.format("set_seed(args.seed)\nmodel = Net(config)\n", "model"), []),
        (_TRAINER.format("", "None, model_init=lambda: Net(config)"), []),
        (_TRAINER.format("model = get_model()\n", "model"), []),
        (_TRAINER.format("model_name = os.environ.get('MODEL')\n", "model_name"), []),
        (_TRAINER.format("model_init = partial(Net, config)\n", "None, model_init=model_init"), []),
        (_TRAINER.format("enable_full_determinism(1)\nmodel = Net(config)\n", "model"), []),
        (_TRAINER.format("random.seed(1)\nmodel = Net(config)\n", "model"), ["sure"]),
        (_TRAINER.format("set_seed(1 + rank)\nmodel = Net(config)\n", "model"), ["sure"]),
        (_ACCELERATE.format("model = Net()\n"), ["sure"]),
        (_ACCELERATE.format("set_seed(1)\nmodel = Net()\n"), []),
        ("import lightning\n" + _ACCELERATE.format("model = Net()\n"), []),
    ],
)
def test_first_weights_that_a_library_does_not_send(text: str, found: list[str]) -> None:
    """As both train in the image: on XLA accelerate wraps no model, so that nothing sends rank 0's weights."""
    drawn = said(text, "initial weights of model")
    assert ["note" if "note: " in one else "sure" for one in drawn] == found


def test_a_seed_in_another_file(tmp_path: Path) -> None:
    """Of the program: its first weights are equal."""
    (tmp_path / "common.py").write_text("import torch\ndef start(seed):\n    torch.manual_seed(seed)\n")
    text = "from common import start\n" + _ACCELERATE.format("start(1)\nmodel = Net()\n")
    script = Script(tmp_path / "train.py", text.encode())
    found = read_program([script, *modules_of(script)[0]])
    assert "unequal_weights" not in {one.kind for one in found[script]}
    assert "unequal_weights" in {one.kind for one in read(script)}


def test_a_generator_on_the_device_of_accelerate() -> None:
    """As most of diffusers' scripts have it: nothing else in them is of CUDA, and torch has no generator for xla."""
    made = "import torch\nfrom accelerate import Accelerator\ng = torch.Generator(device={}).manual_seed(0)\n"
    (found,) = said(made.format("accelerator.device"))
    assert 'Make it for "cpu"' in found
    assert said(made.format("'cpu'")) == []


@pytest.mark.parametrize("trained", [LOOP, "trainer = Trainer(model)\ntrainer.train()\n"])
def test_safetensors_do_not_read_the_device(trained: str) -> None:
    """As nearly all of peft's examples end: `save_pretrained` raises of a model that is still on the device."""
    text = HEAD + "model.save_pretrained(first)\n" + trained + "{}model{}.save_pretrained(folder{})\n"
    (found,) = said(text.format("", "", ""))
    assert 'model.to("cpu") before it' in found
    for at_home in (("model.cpu()\n", "", ""), ("", "", ", state_dict=weights"), ("", ".config", "")):
        assert said(text.format(*at_home)) == []


@pytest.mark.parametrize(
    ("made", "saves"),
    [
        ("unet = UNet2DConditionModel.from_pretrained(name).to(device)", "unet"),
        ("lm = get_peft_model(base, lora)", "lm.module"),
        ("optimizer = AdamW(self.net.parameters())", "self.net"),
        ("unwrapped = accelerator.unwrap_model(net)", "unwrapped"),
    ],
)
def test_a_model_that_is_saved_is_known_by_what_it_is(made: str, saves: str) -> None:
    """Made as models are, or with parameters: not by what its variable is called."""
    (found,) = [
        one
        for one in said(HEAD + made + "\n" + LOOP + f"{saves}.save_pretrained(folder)\n")
        if "safetensors" in one
    ]
    assert f"{saves}.save_pretrained raises" in found


@pytest.mark.parametrize("of", ["AutoTokenizer", "AutoConfig", "DDPMScheduler", "CLIPImageProcessor"])
def test_what_else_is_saved_is_no_model(of: str) -> None:
    """Though its variable may be named after one."""
    text = HEAD + f"of_model = {of}.from_pretrained(name)\n" + LOOP + "of_model.save_pretrained(folder)\n"
    assert not said(text, "safetensors")


@pytest.mark.parametrize(
    ("used", "edited"),
    [
        ("with torch.inference_mode():\n    pass\n", "with torch.no_grad():\n    pass\n"),
        (
            "from torch import inference_mode\n@inference_mode()\ndef f(): ...\n",
            "@torch.no_grad()\ndef f(): ...\n",
        ),
        (
            "with torch.inference_mode(not args.train): pass\n",
            "with torch.inference_mode(not args.train): pass\n",
        ),
    ],
)
def test_evaluation_in_inference_mode(used: str, edited: str) -> None:
    """As torchvision's references and timm evaluate: torch_xla's linear layers raise in it."""
    (found,) = said(HEAD + LOOP + used)
    assert "Cannot set version_counter" in found
    assert changed(HEAD + LOOP + used).endswith(edited)


def test_bf16_is_there_where_cuda_is_not() -> None:
    """As nanoGPT chooses its dtype: the answer for CUDA left it fp16, without the scaler that the port takes out."""
    text = (
        "dtype = 'bfloat16' if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else 'float16'\n"
    )
    found = read(script("import torch\n" + text))[-1]
    assert "is_bf16_supported() is False on trn1, although trn1 has bf16" in str(found)
    assert len(found.edits) == 1
    assert said("import torch_xla\n" + text) == []


_LOGGED = """\
import torch
if torch.cuda.is_available():
    torch.backends.cuda.matmul.allow_tf32 = True
if torch.cuda.is_available():
    print(message, memory=torch.cuda.max_memory_allocated() / 2**20)
else:
    print(message)
if device.type == "cuda":
    torch.cuda.synchronize()
workers = torch.cuda.device_count() if torch.cuda.is_available() else 1
"""


def test_what_is_done_for_a_gpu_alone() -> None:
    """As the logger of torchvision's references prints memory, and timm sets TF32: all of it is skipped on trn1, and
    an edit to `True` would call torch.cuda there.
    """
    assert said(_LOGGED) == []
    assert len(said(_LOGGED.replace("    print(message)", "    raise SystemExit"))) == 2


@pytest.mark.parametrize(
    ("accelerator", "name", "there"),
    [("", "acc", "torch_xla.device()"), ("", "acc.type", "torch_xla.device()"), (".type", "acc", '"xla"')],
)
def test_a_number_behind_torchs_accelerator(accelerator: str, name: str, there: str) -> None:
    """As PyTorch's examples have it since 2025: what `torch_xla.device()` is called has a number already."""
    text = f"""\
import torch
acc = torch.accelerator.current_accelerator(){accelerator}
device: torch.device = torch.device(f"{{{name}}}:{{rank}}")
"""
    edits = [edit for one in read(script(text + LOOP)) if one.line in (2, 3) for edit in one.edits]
    assert [edit.text for edit in edits if isinstance(edit, Edit)] == [there, "torch_xla.device()"]


def test_a_data_set_by_its_name() -> None:
    """As yunjey's tutorials and many notebooks write it: such a loader got no sampler, though the rest was ported."""
    by_name = LOOP.replace("data, sampler=DistributedSampler(data)", "dataset=data, shuffle=True")
    after = changed(HEAD.replace(", DistributedSampler", "") + by_name)
    assert "sampler = DistributedSampler(data, num_replicas=" in after
    assert "DataLoader(dataset=data, sampler=sampler)" in after


def test_a_backend_that_torch_looks_up() -> None:
    """`register_backend(devices="xla")` takes the name's letters for devices, there and here."""
    text = HEAD.replace(
        'group("xla")', "group(backend=torch.distributed.get_default_backend_for_device(device))"
    )
    (found,) = read(script(text + LOOP))
    assert str(found).startswith("5: torch knows no backend for the device xla")
    assert [edit.text for edit in found.edits if isinstance(edit, Edit)] == ['"xla"']


_SAVING = """\
def save(path):
    torch.save(model.state_dict(), path)
for epoch in range(3):
    if {test}:
        save(args.path)
"""


@pytest.mark.parametrize("test", ["local_rank == 0 and epoch % 3 == 0", "self.gpu_id == 0"])
def test_a_file_that_one_rank_saves_in_a_function(test: str) -> None:
    """Its calls stand behind the test, and it is right where torch_xla reads it."""
    assert said(HEAD + LOOP + _SAVING.format(test=test)) == []
    (remark,) = said(HEAD + LOOP + _SAVING.format(test="epoch % 3 == 0"))
    assert "every rank saves tensors of the device" in remark


def test_a_whole_model_that_is_saved() -> None:
    """Its weights are on the device as its state_dict's are; what reads the file expects the model, so no edit."""
    (found,) = read(script(HEAD + LOOP + "torch.save(model, args.path)\n"))
    assert "xm.save(model.state_dict(), ...)" in str(found) and not found.edits


_FILES = {
    "main.py": """\
import torch
import util.misc as misc
from engine import train_one_epoch
misc.init_distributed_mode(args)
model = torch.nn.parallel.DistributedDataParallel(build(), device_ids=[args.gpu])
train_one_epoch(model, loader, optimizer, misc.NativeScaler())
save = misc.save_on_master
""",
    "engine.py": """\
import torch
from util import misc
def train_one_epoch(model, loader, optimizer, loss_scaler):
    for samples in misc.logged(loader):
        loss = model(samples.to(device))
        loss_scaler(loss, optimizer, parameters=model.parameters())
        torch.cuda.synchronize()
""",
    "util/misc.py": """\
import io, torch
from .more import nothing
def init_distributed_mode(args):
    args.dist_backend = "nccl"
    torch.distributed.init_process_group(backend=args.dist_backend)
def copy(model):
    memory = io.BytesIO()
    torch.save(model.state_dict(), memory)
def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)
class NativeScaler:
    def __call__(self, loss, optimizer, parameters):
        loss.backward()
        optimizer.step()
""",
    "util/more.py": "import torch\nif __name__ == '__main__':\n    torch.cuda.synchronize()\n",
}


def test_a_program_of_several_files(tmp_path: Path) -> None:
    """As MAE's, DeiT's and torchvision's references are: what one file lacks is in another, each edit in its own."""
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    script = Script(tmp_path / "main.py")
    modules, whole, _ = modules_of(script)
    assert whole
    assert [one.path.name for one in modules] == ["misc.py", "engine.py", "more.py"]
    found = read_program([script, *modules])
    told = {one.path.name: [finding.line for finding in findings] for one, findings in found.items()}
    assert told == {"main.py": [5, 5], "misc.py": [4, 11], "engine.py": [4, 7], "more.py": []}
    (misc, *_) = modules
    assert b'xla_backend  # registers the backend "xla"' in ported(misc, found[misc]).text


_IN_PARTS = {
    "main.py": """\
import torch
import broken, check, work
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, 8, shuffle=True)
held_out = DataLoader(data, 8)
work.fit(model.cuda(), loader, held_out, opt)
check.train(model, held_out)
""",
    "work/__init__.py": "from .loop import fit\nfrom ....... import above_all_packages\n",
    "work/loop.py": """\
from .. import main
def fit(model, data, held_out, opt):
    train(model, data, opt)
    test(model, loader=held_out)
def train(model, loader, opt):
    for batch in loader:
        model(batch.cuda()).backward()
        opt.step()
def test(model, loader):
    for batch in loader:
        model(batch.cuda())
""",
    "broken.py": "def (:\n",
    "check.py": "def train(model, loader): ...\n",
    "tools/run.py": "import work.loop\n",
}


def test_what_a_program_of_several_files_lacks(tmp_path: Path) -> None:
    """The loop in one, what is made for it in another: the script joins the group, before all others."""
    for name, text in _IN_PARTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    script = Script(tmp_path / "main.py")
    modules, whole, (broken,) = modules_of(script)
    assert [one.path.name for one in modules] == ["check.py", "__init__.py", "loop.py"]
    assert whole and "broken.py, line 1: invalid syntax" in broken
    found = read_program([script, *modules])
    (loop,) = (ported(one, found[one]).text for one in modules[2:])
    assert b"xm.optimizer_step(opt)" in loop and b"init_process_group" not in loop
    assert b'torch.distributed.init_process_group("xla")' in ported(script, found[script]).text
    same = [(one.line, one.edits) for one in found[script] if one.kind == "same_data"]
    assert same == [(4, ())]  # set_epoch would be called in the other file
    below = Script(tmp_path / "tools/run.py")  # the toolkit lets it import from --source-dir
    assert modules_of(below)[0] == []
    assert len(modules_of(below, tmp_path)[0]) == 4


@pytest.mark.parametrize(
    "lines",
    [
        "from pathlib import Path\nsys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'src'))",
        "from pathlib import Path\nROOT = Path(__file__).parent.parent.parent\nsys.path.append(f(ROOT))\n"
        "SRC = ROOT / 'src'\nif SRC.exists():\n    sys.path.insert(0, str(SRC))",
        "import os\nsys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '../src'))",
        "from pathlib import Path\ndef up(root):\n    root = root.parent\n    sys.path.append(str(root))\n"
        "sys.path.append(str(Path(__file__).parents[2] / 'src'))",
        "from pathlib import Path\nROOT = Path(__file__).parents[2] / 'src'\nsys.path.append(str(ROOT))\n"
        "ROOT = Path(os.path.relpath(ROOT, Path.cwd()))",
        "import os\nhere = os.path.dirname(__file__)\nsys.path.append(os.path.abspath(here + '/x'))\n"
        "sys.path += []\nsys.path.append(os.path.join(here, os.environ['X']))",
    ],
)
def test_what_lies_in_a_folder_that_the_script_adds_to_the_path(tmp_path: Path, lines: str) -> None:
    """A script in a repository's folder of scripts has its program beside it; it was said to use no NeuronCore."""
    (tmp_path / "src/work").mkdir(parents=True)
    (tmp_path / "src/work/__init__.py").touch()
    (tmp_path / "src/work/loop.py").write_text("import torch_xla\n")
    place = tmp_path / "scripts/trn/run.py"
    place.parent.mkdir(parents=True)
    place.write_text(f"import sys\n{lines}\nfrom work import loop\n")
    modules, whole, broken = modules_of(Script(place))
    known = "'src" in lines or "/src" in lines
    assert whole and broken == []
    assert [one.path.name for one in modules] == (["__init__.py", "loop.py"] if known else [])


def test_a_library_beside_the_script(tmp_path: Path) -> None:
    """As timm's train.py has timm: its many files tell what the script does not lack, and are not ported."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/__init__.py").write_text("".join(f"from . import a{one}\n" for one in range(50)))
    for one in range(50):
        exchanges = "import torch\nDistributedDataParallel(model, device_ids=[gpu])\n" * (one == 0)
        (tmp_path / f"lib/a{one}.py").write_text(exchanges)
    script = Script(tmp_path / "main.py", f"import lib\n{_BY_NUMBER}".encode())
    modules, whole, _ = modules_of(script)
    assert not whole
    found = read_program([script, *modules], whole=whole)
    assert list(found) == [script]
    assert "no_exchange" not in {one.kind for one in found[script]}
    assert "no_exchange" in {one.kind for one in read(script)}


_GUARDED = """\
def main(device):
    if args.gpu is not None and device.type == 'cuda':
        model.cuda(args.gpu)
    elif device.type == 'cuda':
        model.cuda()
    fused = device.type == 'cuda'
    if device.type == 'cuda':
        images = images.pin_memory()
"""


def test_a_device_that_is_asked_for_before_a_move() -> None:
    """As PyTorch's imagenet example has it: its moves were edited, and the `if` around them stayed False, unsaid once
    the script had torch_xla: the model trained on the host.
    """
    text = changed("import torch\n" + _GUARDED)
    assert 'is not None and device.type == "xla":' in text and 'elif device.type == "xla":' in text
    assert "fused = device.type == 'cuda'" in text  # which torch has for CUDA alone
    assert "    if device.type == 'cuda':\n        images = images.pin_memory()" in text


@pytest.mark.parametrize(
    "made", ["{x: DataLoader(data[x]) for x in names}", "{'train': DataLoader(a), 'val': DataLoader(b)}"]
)
def test_loaders_in_a_dict(made: str) -> None:
    """As PyTorch's tutorial on transfer learning has them: that every core trains on all samples was not told."""
    text = HEAD + LOOP.replace("DataLoader(data, sampler=DistributedSampler(data))", made)
    text = text.replace("MpDeviceLoader(loader,", "MpDeviceLoader(loader[phase],")
    (found,) = read(script(text.replace(", DistributedSampler", "")))
    assert (found.line, found.kind, found.edits) == (8, "same_data", ())


_TYPED = """\
import torch
from torch.cuda.amp import GradScaler
from torch.utils.data import DataLoader
device: torch.device = torch.device("cuda")
model: torch.nn.Module = torch.nn.Linear(8, 1)
optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters())
model = model.to(device)
scaler: GradScaler = GradScaler()
loader: DataLoader = DataLoader(data, batch_size=8)
for batch in loader:
    loss: torch.Tensor = model(batch.to(device)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    print(loss.item())
"""


def test_annotations_change_nothing() -> None:
    """Most of what an annotated assignment makes was not seen: loader, scaler, the optimizer before the move."""
    plain = re.sub(r"(?m)^( *\w+): [\w.]+ =", r"\1 =", _TYPED)
    assert plain != _TYPED and said(_TYPED) == said(plain)
    after = changed(_TYPED)
    assert re.sub(r"(?m)^( *\w+): [\w.]+ =", r"\1 =", after) == changed(plain)
    assert "loader: DataLoader = DataLoader(data, batch_size=8, sampler=sampler)" in after


_DEVICES = """\
import torch
def main(args):
    device = {}
    model = Net().to(device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device])
"""


@pytest.mark.parametrize(
    ("made", "is_number"),
    [
        ("rank % torch.cuda.device_count()", True),
        ("args.local_rank", True),
        ("int(os.environ['LOCAL_RANK'])", True),
        ("init_device(args)", False),
        ("args.gpu", True),
    ],
)
def test_a_device_of_a_wrapper_is_no_number(made: str, is_number: bool) -> None:
    """DistributedDataParallel takes both; what a function of the program's makes of its options is a device."""
    found = said(_DEVICES.format(made))
    assert any("device device is a GPU's number" in one for one in found) is is_number
    assert any("DistributedDataParallel takes no GPU number" in one for one in found)
    parameter = _DEVICES.replace("main(args)", "main(device)").replace("    device = {}\n", "")
    assert any(
        "device device is a GPU's number" in one for one in said(parameter)
    )  # of torch.multiprocessing.spawn
