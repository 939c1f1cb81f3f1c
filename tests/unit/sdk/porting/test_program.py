"""What a script's text says of its port: each mistake with its line, and nothing of a script that is ported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sdk.porting.test_patch import diff, script
from windtunnel.porting.program import of_its_imports, read, read_program
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
STEP = """\
optimizer = torch.optim.SGD(model.parameters())
loader = DataLoader(data, sampler=DistributedSampler(data))
for step, batch in enumerate(pl.MpDeviceLoader(loader, device)):
    out = model(batch)
    loss = torch.nn.functional.mse_loss(out, batch)
    loss.backward()
"""


def said(text: str, of: str = "", *, several: bool = True) -> list[str]:
    """The remarks on a script's text, or those of these words alone."""
    return [one for one in map(str, read(script(text), several=several)) if of in one]


def test_a_ported_loop_is_left_alone() -> None:
    """What the cases below change one thing of; also with torch_xla's older loader."""
    assert said(HEAD + LOOP) == []
    older = "pl.ParallelLoader(loader, [device]).per_device_loader(device)"
    assert said((HEAD + LOOP).replace("pl.MpDeviceLoader(loader, device)", older)) == []


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("torch.view_as_complex(x)", "NCC_EVRF004"),
        ("torch.fft.rfft(x)", "NCC_EVRF004"),
        ("torch.linalg.eigh(x)", "NCC_EVRF001, NCC_EVRF015"),
        ("torch.cummax(x, 0)", "NCC_EVRF019"),
        ("torch.fft.rfftfreq(8)", None),
        ("torch.linalg.norm(x)", None),
    ],
)
def test_what_the_compiler_refuses_is_a_note(call: str, code: str | None) -> None:
    """The text does not tell whether its tensors lie on the device."""
    notes = said(f"{HEAD}x = torch.zeros(4, 4, device=device)\ny = {call}\n{LOOP}")
    assert [note.startswith("8: note: ") and f"({code}" in note for note in notes] == [True] * bool(code)


@pytest.mark.parametrize(
    "call", ['torch.device("neuron")', 'x.to("neuron:0")', 'torch.zeros(4, device="neuron")',
             'net().to("neuron")', 'nets[0].to(device="neuron")', 'torch.compile(f, backend="neuron")',
             'torch.distributed.init_process_group("neuron")']
)  # fmt: skip
def test_native_pytorch_is_told_once(call: str) -> None:
    """AWS's other way on trn2 and trn3: nothing else of such a script fails by its text."""
    (found,) = [remark for remark in said(f"import torch\n{call}\n{call}\n") if "TorchNeuron" in remark]
    assert found.startswith("2: device_unused: ")
    assert not any("TorchNeuron" in remark for remark in said('log("neuron")\nx = "neuron"\n'))


def test_precision_of_a_gpu_in_arguments_of_trainers() -> None:
    """Named with what Trainium has. What is not certain, or bf16 already, is left alone."""
    text = (
        "from accelerate import Accelerator\nfrom transformers import TrainingArguments\nimport trl\n"
        'Accelerator(mixed_precision="fp16")\nTrainingArguments("o", optim=o, fp16=True, tf32=True)\n'
        "trl.SFTConfig(optim=o, fp16=True, bf16=False)\n"
        'Accelerator(mixed_precision="bf16")\nTrainingArguments("o", optim=o, fp16=half, bf16=True, tf32=False)\n'
        "build(fp16=True)\n"
        "import torch\n"
        't = TrainingArguments("o", optim=o, fp16=torch.cuda.is_available())\n'
        't = TrainingArguments("o", optim=o, fp16=torch.cuda.is_available() and half, tf32=torch.cuda.is_available())\n'
        'a = Accelerator(mixed_precision="fp16" if torch.cuda.is_available() else "no")\n'
        't = TrainingArguments("o", optim=o, fp16=args.fp16)\n'
        't = TrainingArguments("o", optim=o, fp16=args.fp16, bf16=args.bf16)\n'
    )
    found = said(text)
    assert [one.partition(":")[0] for one in found] == ["4", "5", "5", "6", "11", "14"]
    assert found[5].startswith("14: note: fp16=args.fp16, ") and found[5].endswith(" bf16=args.fp16.")
    assert "fp16=torch.cuda.is_available() gives fp32 on trn1" in found[4]
    assert all("bf16" in one for one in (found[0], found[1], found[3])) and "fails without a GPU" in found[2]
    patched = diff(script(text))
    assert '+Accelerator(mixed_precision="bf16")' in patched
    assert '+t = TrainingArguments("o", optim=o, bf16=True)' in patched
    assert ' a = Accelerator(mixed_precision="fp16" if torch.cuda.is_available() else "no")' in patched
    assert (
        '+TrainingArguments("o", optim=o, bf16=True, tf32=None)' in patched
        and "SFTConfig(optim=o, fp16=True, bf16" in patched
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("pl.MpDeviceLoader(loader, device)", "loader", 9, "step_without_end: nothing ends a step"),
        ("sampler=DistributedSampler(data)", "shuffle=True", 8, "same_data: every core gets the same"),
        ("DataLoader(data, sampler=DistributedSampler(data))", "DataLoader(load(streaming=True))", 8,
         "same_data: every core gets the same batches. A stream takes no sampler"),
        ("sampler=DistributedSampler(data)", "**options", 8, "same_data: every core gets the same"),
        ("xm.optimizer_step(optimizer)", "optimizer.step()", 12, "no_exchange: each core trains its own"),
        ("    xm.opt", "    print(loss.item())\n    xm.opt", 12, "host_read: loss.item() in each step"),
        ("    xm.opt", "    torch.nn.utils.clip_grad_norm_(p, 1)\n    xm.opt", 12, "clips each core's own"),
        ("torch_xla.device()", '"cpu"', None, ""),
        ('group("xla")', 'group("nccl")', 5, "backend \"nccl\" does not exist on Trainium"),
        ("model(batch)", "model(batch.cuda())", 10, "device_unused: .cuda() does not exist"),
        ("model(batch)", "model(batch.to('cuda:0'))", 10, "device_unused: device 'cuda:0' does not exist"),
        ("    loss.b", "    torch.cuda.synchronize()\n    loss.b", 11, "torch.cuda.synchronize in each step: what"),
        ("    loss.b", "    torch.cuda.memory_allocated()\n    loss.b", 11, "without a GPU it raises, or says"),
        ("model(batch)", "torch.nn.DataParallel(model)(batch)", 10, "DataParallel finds no GPU"),
        ("SGD(model.parameters())", "AdamW(model.parameters(), fused=True)", 7, "fused=True is for CUDA's"),
        ("optimizer =", "model = torch.compile(model)\noptimizer =", 7, "torch.compile is inductor"),
        ("optimizer =", "if a.compile:\n    model = torch.compile(model)\noptimizer =", 8, "note: torch.compile is"),
        ("optimizer =", 'if __name__ == "__main__":\n    model = torch.compile(model)\noptimizer =', 8,
         "8: torch.compile is inductor"),
        ("optimizer =", 'm = torch.compile(m, backend="openxla")\noptimizer =', 7, "torch_compile: torch.compile"),
        ("optimizer =", "model = torch.compile(model, backend=mine)\noptimizer =", None, ""),
        ("model(batch)", "torch.utils.checkpoint.checkpoint(model, batch)", 10, "torch.utils.checkpoint asks for"),
        ("model(batch)", "torch.utils.checkpoint.checkpoint_sequential(model, 2, batch)", 10,
         "torch.utils.checkpoint asks for"),
        ("optimizer =", "model.gradient_checkpointing_enable()\noptimizer =", 7, "library's gradient checkpointing"),
        ("optimizer =", "nets[0].gradient_checkpointing_enable()\noptimizer =", 7, "library's gradient checkpointing"),
        ("optimizer =", "args = TrainingArguments(gradient_checkpointing=True, optim=o)\noptimizer =", 7,
         "the library's gradient"),
        ("optimizer =", "unet.enable_gradient_checkpointing(function)\noptimizer =", None, ""),
        ("import torch_xla.core", "import torch_xla.utils.checkpoint\nmodel.gradient_checkpointing_enable()\n"
         "import torch_xla.core", None, ""),
        ("model(batch)", "torch.utils.checkpoint.checkpoint(model, batch); "
         "torch._register_device_module('xla', torch_xla)", None, ""),
        ("    xm.opt", "    reduce(x, torch.distributed.ReduceOp.AVG)\n    xm.opt", 12, "Invalid reduce op"),
        ("optimizer =", "norm = torch.nn.SyncBatchNorm(8)\noptimizer =", 7, "SyncBatchNorm raises"),
        ("device =", "g = torch.Generator(device='cuda')\ndevice =", 6, "Make it for \"cpu\""),
        ("loader =", "g = torch.Generator(device)\nloader =", 8, "Make it for \"cpu\""),
        ("loader =", "g = torch.Generator(device='cpu')\nloader =", None, ""),
        ("optimizer =", "args = TrainingArguments('o')\noptimizer =", 7, "note: the fused optimizer"),
        ("optimizer =", "args = Seq2SeqTrainingArguments('o', optim='adamw_torch_fused')\noptimizer =", 7,
         "the fused optimizer"),
        ("optimizer =", "args = TrainingArguments(**options)\noptimizer =", None, ""),
        ("optimizer =", "try:\n    from optimum.neuron import NeuronTrainingArguments as T\nexcept ImportError: pass\n"
         "T('o')\noptimizer =", None, ""),
        ("model(batch)", "torch.distributed.fsdp.FullyShardedDataParallel(model)(batch)", 10, "XlaFullySharded"),
        ("device =", "import os\nos.environ['MASTER_PORT'] = '12355'\ndevice =", 7, "torchrun sets MASTER_PORT"),
        ("device =", "import os\nos.environ.setdefault('MASTER_PORT', '12355')\ndevice =", None, ""),
        ("device =", "import os\nif alone:\n    os.environ['MASTER_PORT'] = '12355'\ndevice =", None, ""),
        ("device =", "import os\nos.environ['MASTER_PORT'] = find_free_port()\ndevice =", None, ""),
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


def test_what_a_diff_changes_of_the_training_is_said_beside_it() -> None:
    """The edit alone would take batch norm's statistics over all cores away in silence."""
    text = (HEAD + LOOP).replace(
        "optimizer =", "model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)\noptimizer =", 1
    )
    raises, stays = said(text)
    assert raises.endswith("Keep BatchNorm.") and "GroupNorm" in stays


@pytest.mark.parametrize(
    ("update", "told"),
    [
        ("w.data.add_(-0.1 * w.grad)", True),
        ("w -= 0.1 * w.grad", True),
        ("w.data = w.data - 0.1 * w.grad.data", True),
        ("w.sub_(w.grad, alpha=0.1)", True),
        ("w.grad.mul_(0.1)", False),
        ("norm += w.grad.norm()", False),
        ("w.clamp_(-1, 1)", False),
    ],
)
def test_weights_that_a_script_changes_by_itself(update: str, told: bool) -> None:
    """What it does to gradients alone, or without them, changes no weight by them."""
    by_hand = f"for _, w in model.named_parameters():\n        {update}"
    remarks = said((HEAD + LOOP).replace("xm.optimizer_step(optimizer)", by_hand))
    assert [remark.startswith("13: no_exchange: each core trains") for remark in remarks] == [True] * told
    exchanged = f"xm.reduce_gradients(optimizer)\n    {by_hand}"
    assert said((HEAD + LOOP).replace("xm.optimizer_step(optimizer)", exchanged)) == []


def test_a_loop_that_takes_its_batches_with_next_is_one() -> None:
    """As minGPT's trainer has it: nothing ends its steps, and it clips what no core has exchanged."""
    loop = """\
batches = iter(DataLoader(data, sampler=DistributedSampler(data)))
while True:
    batch = next(batches).to(device)
    loss = model(batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    xm.optimizer_step(optimizer)
"""
    ended, clipped = said(HEAD + loop)
    assert ended.startswith("8: step_without_end: nothing ends a step") and "clips each core's own" in clipped
    assert len(said(HEAD + loop + "    xm.mark_step()\n")) == 1


_OTHERS_LOOP = LOOP.replace("optimizer = torch.optim.SGD(model.parameters())\n", "")
_GIVEN = """\
class Trainer:
    def __init__(self, model, data, optimizer):
        self.model = model.to(torch_xla.device())
        self.optimizer = optimizer
def load():
    torch.manual_seed(0); model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer
model, optimizer = load()
Trainer(model, data, optimizer)
"""


@pytest.mark.parametrize(
    ("before", "line", "moved"),
    [
        ("opt = torch.optim.SGD(model.parameters())\nmodel = model.to(device)\n", 7, 8),
        ("opt = torch.optim.SGD(model.parameters())\nif tpu:\n    model.to(device)\n", 7, 9),
        (_GIVEN, 13, 9),
    ],
)
def test_an_optimizer_made_before_the_model_is_moved(before: str, line: int, moved: int) -> None:
    """In one function, or in another than the one that gets both and moves the model."""
    (remark,) = said(HEAD + before + _OTHERS_LOOP)
    assert remark.startswith(f"{line}: optimizer_before_move: ") and f"in line {moved}," in remark


@pytest.mark.parametrize(
    "before",
    [
        "torch.manual_seed(0)\nmodel = Net().to(device)\nopt = torch.optim.SGD(model.parameters())\nmodel.to(device)\n",
        "opt = torch.optim.SGD(model.parameters())\nmodel.to(torch.bfloat16)\nbatch.to(device)\n",
        "if cpu:\n    opt = torch.optim.SGD(model.parameters())\nelse:\n    model.to(device)\n",
        _GIVEN.replace("Linear(8, 1)", "Linear(8, 1).to(device)"),
        _GIVEN.replace("Trainer(model", "model = model.to(device)\nTrainer(model"),
        _GIVEN.replace("data, optimizer):", "data):"),
        _GIVEN.replace("= optimizer\n", "= torch.optim.SGD(self.model.parameters())\n", 1),
    ],
)
def test_an_optimizer_of_a_model_that_is_on_its_device(before: str) -> None:
    """Moved before it, or to a dtype, or in the other branch; or another is made where it is moved."""
    assert said(HEAD + before + _OTHERS_LOOP) == []


@pytest.mark.parametrize(
    "read",
    [
        "if loss.item() < best: best = 0",
        "if not torch.isfinite(loss): raise ValueError",
        "if rank == 0: print(loss.item())",
        "if xm.is_master_ordinal():\n        total += loss.item()",
        "with torch.no_grad(): right += (out.argmax(-1) == batch).sum().item()",
        "_, top = torch.max(out, 1); tops.extend(top.cpu().tolist())",
        "out = out.detach().to('cpu')",
        "print(f'{step} {loss:.3f}')",
        "print(loss.item() if loss.item() < 3 else 0)",
        "if loss.item() > 3 and step % 10 == 0: pass",
    ],
)
def test_values_read_in_each_step_are_found_wherever_they_stand(read: str) -> None:
    """In tests, expressions and branches that one rank always takes; of what the model returns, too."""
    (remark,) = said(HEAD + STEP + f"    {read}\n    xm.optimizer_step(optimizer)\n")
    assert remark.startswith(("13: host_read: ", "14: host_read: "))


@pytest.mark.parametrize(
    "read",
    [
        "if step % 10 == 0: print(loss.item())",
        "if step % 10 == 0 and loss.item() < best: best = 0",
        "step % 10 or print(loss.item())",
        "if step % 10: continue\n    print(loss.item())",
        "total += loss.detach() * out.size(0); n = float(out.shape[0])",
        "xm.add_step_closure(lambda value: print(value.item()), args=(loss,))",
        "print(f'{step} {loss.shape}', lengths.cpu(), seen.item())",
        "try: check()\n    except ValueError: print(loss.item())",
        "if loss is None: pass",
    ],
)
def test_values_that_may_be_read_less_often_or_elsewhere_are_not(read: str) -> None:
    """Every N steps, behind a condition that is not known, or of the host."""
    step = STEP.replace("loss.b", "(loss / accum).b")
    assert said(HEAD + step + f"    {read}\n    xm.optimizer_step(optimizer)\n") == []


def test_a_value_is_read_once_and_a_function_runs_in_each_step() -> None:
    """What has been fetched is on the host; a function that the loop calls is part of the step."""
    (remark,) = said(
        HEAD + STEP + "    out = out.cpu()\n    out.tolist(); n = out.numpy()\n    xm.optimizer_step(o)\n"
    )
    assert remark.startswith("13: host_read: out.cpu()")
    function = """\
def step(model, batch, device):
    loss = model(batch)
    loss.backward()
    return loss.item()
for batch in pl.MpDeviceLoader(loader, device):
    total += step(model, batch, device)
    xm.optimizer_step(optimizer)
"""
    (remark,) = said(HEAD + function)
    assert remark.startswith("10: host_read: loss.item()")


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        ("8", True),
        ("batch_size=8, drop_last=True", False),
        ("8, drop_last=args.drop", False),
        ("8, **options", False),
        ("batch_size=1", False),
        ("batch_size=None", False),
    ],
)
def test_a_last_batch_that_may_be_smaller_is_noted(options: str, noted: bool) -> None:
    """Not as a finding: whether the batch size divides the samples, no text tells."""
    before = "data, sampler"
    text = HEAD + LOOP.replace(
        before, f"data, {options}, sampler" if "**" not in options else "data, 8, sampler"
    )
    text = text.replace("(data))\nfor", "(data), **options)\nfor") if "**" in options else text
    remarks = said(text)
    assert [remark.split(": ")[1:3] for remark in remarks] == ([["note", "ragged_batch"]] if noted else [])


def test_saving_by_every_rank_and_by_one() -> None:
    """Every rank over the others' file is a mistake; behind a test of the rank, or from the host, it is none."""
    save = "torch.save(model.state_dict(), out)\n"
    (remark,) = said(HEAD + LOOP + save)
    assert "every rank saves" in remark
    guarded = f"if rank == 0:\n    {save}"
    returned = f"def save(rank):\n    if rank:\n        return\n    {save}"
    moved = "state = xm._maybe_convert_to_cpu(model.state_dict())\ntorch.save(state, out)\n"
    own = 'torch.save(model.state_dict(), f"{out}.{rank}")\n'
    for fine in (guarded, returned, moved, own, "torch.save(losses, out)\n"):
        assert said(HEAD + LOOP + fine) == [], fine


def test_a_script_that_has_the_device_and_never_names_it() -> None:
    """It would train on the CPU; the run says so under the same name."""
    text = HEAD.replace("device = torch_xla.device()\n", "") + LOOP.replace(
        "pl.MpDeviceLoader(loader, device)", "loader"
    )
    assert any(
        remark.startswith("8: device_unused: the loop trains on the host's CPU") for remark in said(text)
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import lightning as L\nL.Trainer(max_epochs=3).fit(model)\n", 2),
        ("from lightning.pytorch import Trainer\ntrainer = Trainer(accelerator='gpu', devices=2)\n", 2),
        ("from lightning.fabric import Fabric\nfabric = Fabric()\n", 2),
        ("import lightning as L\nfrom neuronx_distributed.lightning import NeuronXLAStrategy\n"
         "L.Trainer(strategy=NeuronXLAStrategy())\n", None),
        ("import lightning as L\nfrom neuronx_distributed.lightning import NeuronXLAStrategy\n"
         "strategy = NeuronXLAStrategy()\nL.Trainer(devices=8, **options)\n", None),
        ("from transformers import Trainer\nTrainer(model).train()\n", None),
    ],
)  # fmt: skip
def test_lightning_has_no_neuron_core(text: str, line: int | None) -> None:
    """Unless AWS's strategy is there."""
    found = [remark.partition(":")[0] for remark in said(text) if "Lightning uses no NeuronCore" in remark]
    assert found == ([] if line is None else [str(line)])


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ("accelerator='gpu', devices=[0]", True),
        ("accelerator='gpu', strategy=strategy", True),
        ("devices=32", False),
        ("accelerator=args.accelerator", False),
    ],
)
def test_lightning_asks_for_a_gpu_beside_aws_strategy(given: str, *, is_told: bool) -> None:
    """That ends with an error whatever strategy it has."""
    text = (
        "import pytorch_lightning as pl\nfrom neuronx_distributed.lightning import NeuronXLAStrategy\n"
        f"strategy = NeuronXLAStrategy()\npl.Trainer({given})\n"
    )
    told = [remark for remark in said(text) if "Lightning" in remark]
    assert [remark.partition(" as ")[0] for remark in told] == ["4: 'gpu'"] * is_told


@pytest.mark.parametrize(
    ("imported", "of_its_own"),
    [
        ("from lightning.pytorch.callbacks import Callback", True),
        ("import pytorch_lightning.loggers", True),
        ("import lightning.pytorch as pl", False),
        ("from lightning.fabric import Fabric", False),
    ],
)
def test_lightning_runs_no_loop_by_a_callback(imported: str, of_its_own: bool) -> None:
    """Beside one, the script's own loop is read."""
    clips = "    torch.nn.utils.clip_grad_norm_(p, 1)\n    xm.opt"
    text = imported + "\n" + (HEAD + LOOP).replace("    xm.opt", clips)
    assert [remark.startswith("13: clips each core's own") for remark in said(text)] == [True] * of_its_own


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
        HEAD
        + "d = xm.xla_device() if args.xla else torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n",
        HEAD + "d = torch.device('cuda:0') if args.gpu else torch_xla.device()\n",
        HEAD + "x = x.pin_memory().cuda() if torch.cuda.is_available() else x\n",
    ],
)
def test_no_false_alarms(text: str) -> None:
    """What only looks like CUDA, is never reached, or is a library's business."""
    assert said(text) == []


@pytest.mark.parametrize(
    "made",
    [
        "bnb.optim.Adam8bit(model.parameters())",
        "Adafactor(model.parameters())",
    ],
)
def test_what_clears_gradients_and_steps_is_an_optimizer(made: str) -> None:
    """Whoever made it, and whatever it is called; a schedule and a profiler step, too, and clear none."""
    loop = LOOP.replace("torch.optim.SGD(model.parameters())", made).replace("optimizer =", "opt =")
    loop = loop.replace("    loss =", "    opt.zero_grad()\n    loss =").replace(
        "    xm.optimizer_step(optimizer)\n", "{}"
    )
    (remark,) = said(HEAD + loop.format("    opt.step()\n    schedule.step()\n    profile.step()\n"))
    assert remark.startswith("13: no_exchange: each core") and "xm.optimizer_step(opt)" in remark
    assert (
        said(HEAD + loop.format("    xm.optimizer_step(opt)\n    schedule.step()\n    profile.step()\n"))
        == []
    )


def test_shards_are_not_made_equal() -> None:
    """XLA's FSDP: rank 0's shard in the place of the others' would be another model."""
    model = "model = XlaFullyShardedDataParallel(Net())\n"
    from_xla = "from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel\n"
    assert said(HEAD + "model = Net()\n" + LOOP, "initial weights")
    assert not said(from_xla + HEAD + model + LOOP, "initial weights")


def test_the_name_of_a_device_is_no_number_of_a_gpu() -> None:
    """`set_device` takes either; where it is a name, the line that makes it is the one to change."""
    text = "import torch\n{}\ntorch.cuda.set_device(device)\nbatch = batch.to(device)\n"
    numbered = said(text.format("device = int(rank)"))
    assert any("is a GPU's number" in remark for remark in numbered)
    named = said(text.format('device = f"cuda:{rank}"'))
    assert [remark.partition(":")[0] for remark in named] == ["2", "3"]


def test_no_false_alarms_in_tutorials_and_examples() -> None:
    """They are ported: nothing is said of them."""
    paths = [
        path for folder in ("tests/docker/tutorials", "examples") for path in (ROOT / folder).rglob("*.py")
    ]
    assert len(paths) > 10
    versions = {path: "1.11" if "older" in path.parts else "2.9" for path in paths}
    found = [str(one) for path in paths for one in read(Script(path), version=versions[path]) if one.sure]
    assert found == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import torch\n", "would train on the instance's CPU"),
        (
            "import sys\nimport subprocess\nsubprocess.run([sys.executable, '-m', 'train'])\n",
            "line 3 starts another",
        ),
        ("import os\nos.system('torchrun train.py')\n", "line 2 starts another program, which is not read"),
        ("from neuronx_distributed.lightning import NeuronXLAStrategy\n", ""),
        ("import os, torch_xla\nos.system('df -k')\n", ""),
    ],
)
def test_a_script_without_a_neuron_core(text: str, words: str) -> None:
    """It may start the one that has it."""
    notes = of_its_imports(script(text))
    assert [words in note for note in notes] == [True] * bool(words)


_SIBLING = """\
import torch
def learning_rate(step):
    return helper(step)
def helper(step):
    torch.cuda.synchronize()
def registered(step):
    torch.cuda.synchronize()
def main():
    model = Net().cuda()
    train(model)
class Trainer:
    def fit(self):
        torch.cuda.synchronize()
"""


@pytest.mark.parametrize(
    ("uses", "lines"),
    [
        ("sibling.learning_rate(1)", [5]),
        ("pass", []),
        ("sibling.main()", [9]),
        ("sibling.Trainer()", [13]),
        ("make = getattr(sibling, name)", [5, 7, 9, 13]),
        ("make = getattr(sibling, 'registered')", [7]),
        ("make = getattr(sibling.nets, name)", [5, 7, 9, 13]),
        ("make = getattr(sys.modules[__name__], name)", [5, 7, 9, 13]),
        ("make = sibling.__dict__[args.arch]()", [5, 7, 9, 13]),
        ("make = locals()[name]", [5, 7, 9, 13]),
        ("make = getattr(args, name)", []),
        ("make = args.__dict__[name]", []),
        ("model.eval()", []),
        ("make = TABLE['registered']", [7]),
        ("class Trainer(sibling.Trainer):\n    pass\nTrainer()", [13]),
        ("def main():\n    sibling.main()\nmain()", [9]),
        ("def helper():\n    pass\nhelper()", []),
    ],
)
def test_of_a_file_beside_it_what_the_program_comes_to(uses: str, lines: list[int]) -> None:
    """A script for TPUs takes some functions of the one for GPUs beside it, whose others it never runs."""
    first = f"import torch_xla, sibling\n{uses}\n"
    train, sibling = script(first, "train_tpu.py"), script(_SIBLING, "sibling.py")
    assert [one.line for one in read_program([train, sibling])[sibling]] == lines
    decorated = script(_SIBLING.replace("def registered", "@register\ndef registered"), "sibling.py")
    found = read_program([train, decorated])[decorated]
    assert any(one.line == 8 for one in found)  # what is registered somebody may take
