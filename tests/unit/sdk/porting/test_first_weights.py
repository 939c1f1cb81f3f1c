"""First weights that differ between cores: what makes them equal for certain, and what only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import modules_of, read_program
from windtunnel.porting.script import Script

_NET = "model = Net().to(device)\n"
_TRAIN = "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, set_seed\n{}trainer.train()\n"


def _kind(text: str) -> str:
    """How `unequal_weights` is told: not, as a note, surely."""
    found = said(text, "unequal_weights")
    return "note" if any("note: " in one for one in found) else "sure" if found else ""


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (_NET, "sure"),
        (_NET.replace("()", "(pretrained=False)"), "sure"),
        ("config = json.load(open(path))\n" + _NET, "sure"),
        (_NET + "optimizer.load_state_dict(torch.load(path))\n", "sure"),
        (_NET + "torch.manual_seed(0)\n", "sure"),
        ("import numpy as np\nnp.random.seed(0)\n" + _NET, "sure"),
        ("torch.cuda.manual_seed_all(0)\n" + _NET, "sure"),
        ("import random\ndef set_seed(n):\n    random.seed(n)\nset_seed(1)\n" + _NET, "sure"),
        ("if args.seed is not None:\n    torch.manual_seed(args.seed)\n" + _NET, "note"),
        (_NET + "if args.resume:\n    model.load_state_dict(torch.load(args.resume))\n", "note"),
        ("def seeds(n):\n    torch.manual_seed(n)\nif args.seed:\n    seeds(args.seed)\n" + _NET, "note"),
        ("body = resnet(pretrained=True)\nmodel = Net(body).to(device)\n", "note"),
        ("import random\nif no:\n    n = random.randint(1, 99)\ntorch.manual_seed(n)\n" + _NET, "note"),
        ("import os\ntorch.manual_seed(os.getpid())\n" + _NET, "note"),
        ("seed = 3 + xm.get_ordinal()\ntorch.manual_seed(seed)\n" + _NET, "sure"),
        ("torch.manual_seed(seed)\n" + _NET + "seed = seed + rank\n", ""),
        ("args = parse(rank)\ntorch.manual_seed(args.seed)\n" + _NET, ""),
        ("import random\nrandom.seed(1)\ntorch.manual_seed(random.randint(1, 99))\n" + _NET, ""),
        ("def seeds(n):\n    torch.manual_seed(n)\nseeds(1)\n" + _NET, ""),
        (_NET + "load_checkpoint(model, path)\n", ""),
        (_NET + "xm.broadcast_master_param(model)\n", ""),
        ("model = resnet50(weights=chosen).to(device)\n", ""),
        ("model = Net.from_pretrained(path).to(device)\n", ""),
        ("model = Net(nets[kind].from_pretrained(path)).to(device)\n", "note"),
        ("model = given.to(device)\n", ""),
        (_NET + "model.module.load_state_dict(torch.load(path))\n", ""),
        ("def build():\n    net = Net()\n    net.load_state_dict(torch.load(path))\n    return net\n"
         "model = build()\n", ""),
        ("if __name__ == '__main__':\n    torch.manual_seed(1)\n" + _NET, ""),
    ],
)  # fmt: skip
def test_what_makes_first_weights_equal(made: str, kind: str) -> None:
    """A seed of torch's before the model, or a file for it, on every way: of anything else it is told."""
    assert _kind(HEAD + made + LOOP) == kind
    assert said(HEAD + made + LOOP, "unequal_weights", several=False) == []


def test_a_seed_in_a_function_that_runs_after_the_model() -> None:
    """The order is that of what calls both."""
    text = HEAD + "def build():\n    return Net()\ndef main():\n    {}\n    {}\n"
    trains = "".join(f"    {line}\n" for line in LOOP.splitlines()) + "main()\n"
    seed, model = "torch.manual_seed(1)", "model = build()"
    assert [_kind(text.format(*order) + trains) for order in ((model, seed), (seed, model))] == ["sure", ""]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("trainer = Trainer(model=Net(), args=args)\n", "sure"),
        ("model = Net()\nset_seed(1)\ntrainer = Trainer(model, args)\n", "sure"),
        ("set_seed(1)\ntrainer = Trainer(model=Net(), args=args)\n", ""),
        ("from trl import SFTTrainer\ntrainer = SFTTrainer('gpt2', peft_config=LoraConfig())\n", "note"),
        ("from trl import SFTTrainer\ntrainer = SFTTrainer('gpt2', peft_config=None)\n", ""),
        ("from accelerate.utils import set_seed\nset_seed(1, device_specific=True)\nmodel = Net()\n"
         "trainer = Trainer(model=model)\n", "sure"),
        ("from accelerate import Accelerator\nmodel = Accelerator().prepare(Net())\n", "sure"),
    ],
)  # fmt: skip
def test_first_weights_that_a_trainer_is_given(made: str, kind: str) -> None:
    """Made where they are handed over, or an adapter that the Trainer makes."""
    assert _kind(_TRAIN.format(made)) == kind


@pytest.mark.parametrize(
    ("base", "managed"), [("", False), ("(Base)", False), ("(transformers.Trainer)", True)]
)
def test_a_trainer_of_the_programs_own(tmp_path: Path, base: str, managed: bool) -> None:
    """Its loop is in a file that is read, as in minGPT's: what a library would do, it does not."""
    trainer = f"import transformers\nclass Trainer{base}:\n    pass\n"
    (tmp_path / "trainer.py").write_text(trainer)
    loop = LOOP.replace("xm.optimizer_step(optimizer)", "optimizer.step()")
    text = HEAD + "from trainer import Trainer\ntorch.manual_seed(0)\n" + loop + "Trainer(model)\n"
    first = Script(tmp_path / "train.py", text.encode())
    kinds = {one.kind for one in read_program([first, *modules_of(first)[0]])[first]}
    assert ("no_exchange" in kinds) == (not managed)


def test_a_method_is_not_the_function_of_its_name() -> None:
    """`generator.train()` in a loop calls no `train` of the script's, whose values are read once."""
    text = (
        HEAD
        + "def train():\n    {}\n    loss = model(batch.to(device))\n    loss.backward()\n    print(loss.item())\n"
    )
    text = text.format("torch.manual_seed(0)") + "for epoch in range(9):\n    {}\n"
    assert said(text.format("generator.train()"), "host_read") == []
    assert said(text.format("train()"), "host_read")


_LOADED = "model = resnet18(weights='DEFAULT')\n"
_HEADED = f"{_LOADED}model.fc = torch.nn.Linear(9, 2)\nmodel = model.to(device)\n"


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (_HEADED, "note"),
        (_HEADED.replace("model.fc", "model.classifier[6]"), "note"),
        (_HEADED.replace("torch.nn.Linear(9, 2)", "FastRCNNPredictor(9, 2)"), "note"),
        ("def build():\n    net = resnet18(weights='DEFAULT')\n    net.fc = torch.nn.Linear(9, 2)\n    return net\n"
         "model = build().to(device)\n", "note"),
        (f"{_HEADED}if args.resume:\n    model.load_state_dict(torch.load(args.resume))\n", "note"),
        (f"{_HEADED}model.load_state_dict(torch.load(path))\n", ""),
        (f"torch.manual_seed(0)\n{_HEADED}", ""),
        (_LOADED, ""),
        (_HEADED.replace("torch.nn.Linear(9, 2)", "Config(9, 2)"), ""),
        (_HEADED.replace("model.fc =", "other.fc ="), ""),
        (_HEADED.replace("torch.nn.Linear(9, 2)", "torch.nn.CrossEntropyLoss()"), ""),
    ],
)  # fmt: skip
def test_a_new_part_of_a_pretrained_model(made: str, kind: str) -> None:
    """As in transfer learning: no file has it, and each core draws its own."""
    assert _kind(HEAD + made + LOOP) == kind
    if kind:
        (found,) = said(HEAD + made + LOOP, "unequal_weights")
        assert "its own initial weights of model (those that no file has)" in found


def test_a_file_that_is_loaded_behind_the_training() -> None:
    """As the best of its checkpoints: it makes no first weights equal."""
    best = "model.load_state_dict(torch.load(path))\n"
    assert _kind(HEAD + _NET + LOOP + best) == "sure"
    assert _kind(HEAD + _NET + best + LOOP) == ""
    fit = f"def fit(loader):\n    {LOOP.replace(chr(10), chr(10) + '    ').rstrip()}\n"
    assert _kind(HEAD + _NET + fit + f"fit(loader)\n{best}") == "sure"
    assert _kind(HEAD + _NET + fit + f"{best}fit(loader)\n") == ""
    run = f"def run():\n    fit(loader)\n    {best}run()\n"
    assert _kind(HEAD + _NET + fit + run) == "sure"


def test_a_teacher_that_is_not_trained() -> None:
    """Its parameters are read to freeze them: of the student, whose named ones the optimizer gets, it is told."""
    teacher = "teacher = Net().to(device)\nfor one in teacher.parameters():\n    one.requires_grad_(False)\n"
    assert _kind(HEAD + teacher + "torch.manual_seed(0)\n" + _NET + LOOP) == ""
    named = "[one for name, one in model.named_parameters()]"
    assert _kind(HEAD + _NET + LOOP.replace("model.parameters()", named)) == "sure"


_SENT = "xm.broadcast_master_param(model)\n"
_OTHER = "other = Net().to(device)\noptimizer = torch.optim.SGD(other.parameters())\n"


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (_NET, _NET + _SENT),
        ("model = Net()\nmodel.cuda()  # there\n", f"model = Net()\nmodel.to(device)  # there\n{_SENT}"),
        (_NET + _OTHER, _NET + _SENT + _OTHER.replace("\nopt", f"\n{_SENT.replace('model)', 'other)')}opt")),
        ("model = Net()\nif cuda:\n    model.cuda()\n", f"model = Net()\nif cuda:\n    model.to(device)\n    {_SENT}"),
        ("model = Net()\nif rank < 2:\n    model.to(device)\n",) * 2,
        ("model = Net()\nwork(model.to(device))\n",) * 2,
        (f"{_NET}groups = list(body.head.parameters())\n",) * 2,
        (f"{_NET}groups = list(model.head.parameters())\n",
         f"{_NET}{_SENT}groups = list(model.head.parameters())\n"),
        ("if args.seed:\n    torch.manual_seed(args.seed)\n" + _NET, _NET + _SENT),
        ("body = resnet(pretrained=True)\nmodel = Net(body).to(device)\n",) * 2,
    ],
)  # fmt: skip
def test_the_edit_that_sends_rank_0s(made: str, after: str) -> None:
    """Behind the move of each model, where all have one; also where a condition decides whether something else does."""
    text = changed(HEAD + made + LOOP)
    assert f"{after}{LOOP}" in text
    assert bool(_kind(text)) is (made == after)


_INIT = "model.apply(weights_init)\n"


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (_NET + _INIT, _NET + _INIT + _SENT),
        (_NET + "init_weights(model)\n", _NET + "init_weights(model)\n" + _SENT),
        (_NET + "torch.nn.init.zeros_(model.head.bias)\n", _NET + "torch.nn.init.zeros_(model.head.bias)\n" + _SENT),
        (_NET + "for one in parts:\n    model.head.reset_parameters()\nn = 1\n",
         _NET + "for one in parts:\n    model.head.reset_parameters()\n" + _SENT + "n = 1\n"),
        ("model = Net()\nif cuda:\n    model.cuda()\n" + _INIT,
         "model = Net()\nif cuda:\n    model.to(device)\n" + _INIT),
        ("model = Net()\n" + _INIT + "model.to(device)\n", "model = Net()\n" + _INIT + "model.to(device)\n" + _SENT),
        (_NET + "other.apply(weights_init)\n", _NET + _SENT + "other.apply(weights_init)\n"),
        (_NET + "if on:\n    model.load_state_dict(w)\n", _NET + _SENT + "if on:\n    model.load_state_dict(w)\n"),
    ],
)  # fmt: skip
def test_weights_that_are_drawn_behind_the_move(made: str, after: str) -> None:
    """As PyTorch's DCGAN has it: sent before that, they would differ again. A file is the same for all."""
    assert f"{after}{LOOP}" in changed(HEAD + made + LOOP)


def test_weights_that_are_drawn_behind_the_training() -> None:
    """As for the next fold."""
    assert f"{_NET}{_SENT}{LOOP}{_INIT}" in changed(HEAD + _NET + LOOP + _INIT)


def test_a_layer_is_sent_by_no_edit() -> None:
    """It is a part of the model."""
    text = "class Net(torch.nn.Module):\n    def __init__(self):\n        self.fc = torch.nn.Linear(2, 2).to(device)\n"
    text += "optimizer = torch.optim.SGD(self.fc.parameters())\n"
    text = HEAD + text + LOOP.replace("model", "self.fc")
    assert _kind(text) == "sure" and "broadcast" not in changed(text)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ("", ""),
        ("self.drop = torch.nn.Dropout(0.1)", ""),
        ("self.config = AutoConfig.from_pretrained(path)", ""),
        ("self.head = torch.nn.Linear(4, 4)", "note"),
        ("self.head = Pooling(4)", "note"),
        ("self.other = AutoModel.from_config(config)", "note"),
        ("self.add_head()", "note"),
        ("self.scale = torch.nn.Parameter(torch.randn(1))", "note"),
    ],
)
def test_a_class_around_a_pretrained_model(more: str, kind: str) -> None:
    """As those of sentence embeddings: each core reads the same file, and draws what else it has."""
    body = f"super().__init__()\n        self.body = AutoModel.from_pretrained(path)\n        {more or 'self.n = 1'}"
    around = f"class Around(torch.nn.Module):\n    def __init__(self, path):\n        {body}\n"
    made = f"from transformers import AutoConfig, AutoModel\n{around}model = Around('bert').to(device)\n"
    assert _kind(HEAD + made + LOOP) == kind


_STARTED = """\
import torch_xla.distributed.xla_multiprocessing as xmp
{}
def train(index):
    device = xm.xla_device()
    model = made.to(device)
    optimizer = torch.optim.SGD(model.parameters())
    for batch in pl.MpDeviceLoader(loader, device):
        model(batch).backward()
        xm.optimizer_step(optimizer)
if __name__ == "__main__":
    {}
"""


@pytest.mark.parametrize(
    ("before", "start", "kind"),
    [
        ("model = Net()", "xmp.spawn(train, start_method='fork')", ""),
        ("model = Net()", "xmp.spawn(train)", "sure"),
        ("", "model = Net(); xmp.spawn(train, args=(model,))", ""),
        (
            "def start():\n    model = Net()\n    xmp.spawn(train, args=(model,), start_method='fork')",
            "start()",
            "",
        ),
        ("def make():\n    model = Net()\n    return model", "xmp.spawn(train, start_method='fork')", "sure"),
    ],
)
def test_a_model_that_is_made_before_the_processes_is_one(before: str, start: str, kind: str) -> None:
    """As xmp.MpModelWrapper's are: a fork has it, or is handed it; a process that reads the file anew draws its own."""
    head = HEAD.replace('torch.distributed.init_process_group("xla")\n', "").replace(
        "device = torch_xla.device()\n", ""
    )
    assert _kind(head + _STARTED.format(before, start).replace("made.to", "model.to")) == kind


@pytest.mark.parametrize(("seed", "found"), [("", True), ("torch.manual_seed(0)\n", False)])
def test_a_model_whose_optimizer_another_file_makes(seed: str, found: bool) -> None:
    """As SupContrast has it: the log said that the cores begin from other weights, and check did not."""
    util = "import torch\ndef optimizer_of(opt, model):\n    return torch.optim.SGD(model.parameters(), opt.lr)\n"
    make = f"import torch\nfrom util import optimizer_of\n{seed}def make():\n    model = Net()\n"
    make += "    if torch.cuda.is_available():\n        model = model.cuda()\n    return model\n"
    loop = "model = make()\noptimizer = optimizer_of(opt, model)\nfor x in data:\n    model(x.cuda()).backward()\n"
    scripts = [script(make + loop), script(util, "util.py")]
    told = [one for one in read_program(scripts)[scripts[0]] if one.kind == "unequal_weights"]
    assert bool(told) is found
    assert all("broadcast_master_param(model)" in one.edits[0].text for one in told)  # type: ignore[union-attr]
