"""Files that a script saves: by whom, and of what."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_patch import changed, diff, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read

_HEAD = """\
import os
import torch
from torch.utils.data import DataLoader
torch.distributed.init_process_group("nccl")
path = os.environ["SM_MODEL_DIR"] + "/model.pt"
torch.manual_seed(0)
model = build().cuda()
optimizer = torch.optim.SGD(model.parameters())
for step, batch in enumerate(loader):
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
"""
_SAVED = "torch.save(model.state_dict(), path)"
_OUT = "xm.save(model.state_dict(), path)"


def _saves(text: str, version: str = "2.9") -> list[str]:
    return [str(one) for one in read(script(_HEAD + text), version) if "torch.save:" in one.text]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"    if rank == 0:\n        {_SAVED}\n", f"    {_OUT}\n"),
        (f"    if rank == 0: {_SAVED}\n", f"    {_OUT}\n"),
        (f"    if is_main_process():  # alone\n        # the best\n        {_SAVED}  # so\n",
         f"    # alone\n    # the best\n    {_OUT}  # so\n"),
        (f"    if step % 9 == 0 and rank == 0:\n        {_SAVED}\n", f"    if step % 9 == 0:\n        {_OUT}\n"),
        (f"    if (a or b) and c and not rank:\n        {_SAVED}\n", f"    if (a or b) and c:\n        {_OUT}\n"),
        (f"    if not args.distributed or dist.get_rank() == 0:\n        {_SAVED}\n", f"    {_OUT}\n"),
        ("    if rank == 0:\n        os.makedirs(path, exist_ok=True)\n        state = {\n"
         "            's': model.state_dict(),\n        }\n        torch.save(state, path)\n",
         "    os.makedirs(path, exist_ok=True)\n    state = {\n            's': model.state_dict(),\n        }\n"
         "    xm.save(state, path)\n"),
        (f"    if rank == 0:\n        {_SAVED}\n        torch.save(optimizer.state_dict(), b)\n",
         f"    {_OUT}\n    xm.save(optimizer.state_dict(), b)\n"),
        (f"    if not dist.is_initialized() or rank == 0:\n        {_SAVED}\n", f"    {_OUT}\n"),
        (f"    if fabric.is_global_zero:\n        {_SAVED}\n", f"    {_OUT}\n"),
        (f"    if rank == world_size - 1:\n        {_SAVED}\n", f"    {_OUT}\n"),
        ("    if rank == 0:\n        state = {}\n        state['s'] = model.state_dict()\n"
         "        torch.save(state, path)\n",
         "    state = {}\n    state['s'] = model.state_dict()\n    xm.save(state, path)\n"),
    ],
)  # fmt: skip
def test_a_save_by_one_rank_is_made_by_all(before: str, after: str) -> None:
    """xm.save tests the rank itself. In the loop it runs the step, for whose exchange one alone would wait."""
    (found,) = dict.fromkeys(one.partition(": ")[2] for one in _saves(before))
    assert "all processes call it, outside of the test of the rank" in found and "would wait" not in found
    assert changed(_HEAD + before).endswith(after)


@pytest.mark.parametrize(
    "save",
    [
        f"    if rank == 0:\n        print('saved')\n        {_SAVED}\n",
        f"    if rank == 0:\n        file = open(path, 'wb')\n        {_SAVED}\n",
        f"    if rank == 0:\n        {_SAVED}\n        torch.save(losses, path)\n",
        f"    if rank == 0:\n        {_SAVED}\n    else:\n        work()\n",
        f"    if rank == 0:\n        folder = made()\n    if rank == 0:\n        {_SAVED.replace('path', 'folder')}\n",
        f"    if a:\n        work()\n    elif rank == 0:\n        {_SAVED}\n",
        f"    if rank == 0: a = 1; {_SAVED}\n",
        f"    if best[rank] < loss:\n        {_SAVED}\n",
        f"    if rank == 0:\n        if step % 9 == 0:\n            {_SAVED}\n",
        f"    if rank != 0: continue\n    {_SAVED}\n",
        f"    main = rank == 0\n    if not main:\n        continue\n    {_SAVED}\n",
        f"    rank == 0 and {_SAVED}\n",
        f"    if rank == 0:\n        {_SAVED.replace('path', 'open(path, mode)')}\n",
        f"    {_SAVED} if rank == 0 else None\n",
        f"    match rank:\n        case 0:\n            {_SAVED}\n",
        f"    if (mine := rank) == 0 and step % 9 == 0:\n        {_SAVED}\n    print(mine)\n",
        f"    if rank == 0:\n        result = evaluate(model)\n        {_SAVED}\n",
        f"    if args.rank_by == 'loss':\n        {_SAVED}\n",
        f"    if rank == 0:\n        import p\n    if rank == 0:\n        {_SAVED.replace('path', 'p.q')}\n",
        f"    if rank == 0:\n        path = str(time())\n        os.makedirs(path, exist_ok=True)\n        {_SAVED}\n",
        f"    if rank == 0:\n        p.q = made()\n    if rank == 0:\n        {_SAVED.replace('path', 'p.q')}\n",
    ],
)
def test_a_save_that_stays_with_one_rank_is_told(save: str) -> None:
    """What stands beside it is for one process, or it cannot be told what the test asks for: no edit."""
    (found,) = _saves(save)
    assert "outside of the test of the rank, as one alone would wait for the others" in found
    assert changed(_HEAD + save).endswith(save)


@pytest.mark.parametrize(
    "test", ["args.lora_rank", "cfg.lora.rank == 8", "args.rerank", "args.master_weights"]
)
def test_a_condition_that_is_the_same_on_all_ranks(test: str) -> None:
    """Of another rank than a process has: it stays around the save."""
    save = f"    if {test}:\n        {_SAVED}\n"
    (found,) = _saves(save)
    assert "every rank saves tensors" in found
    assert changed(_HEAD + save).endswith(save.replace(_SAVED, _OUT))


@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(0)", "return"])
def test_a_save_behind_the_end_of_other_ranks(end: str) -> None:
    """However they end before it."""
    text = f"import sys\ndef save():\n    while True:\n        if rank != 0:\n            {end}\n        {_SAVED}\n"
    text += "save()\n"
    assert "every rank saves" not in _saves(text)[0]
    assert "every rank saves" in _saves(text.replace("rank != 0", "done"))[0]
    assert "every rank saves" in _saves(text.replace(end, "work()"))[0]


def test_a_function_for_the_main_process() -> None:
    """A decorator tests the rank."""
    text = f"@rank_zero_only\ndef save():\n    {_SAVED}\nsave()\n"
    assert "every rank saves" not in _saves(text)[0]
    assert "every rank saves" in _saves(text.replace("rank_zero_only", "cache"))[0]


@pytest.mark.parametrize("more", ["pickle_protocol=4", "pickle"])
def test_an_argument_of_torch_save_alone(more: str) -> None:
    """xm.save would raise: no edit, nor of the test of the rank around it."""
    save = f"if rank == 0:\n    torch.save(model.state_dict(), path, {more})\n    {_SAVED}\n"
    assert "It takes no" in _saves(save)[0] and ": leave that out." in _saves(save)[0]
    assert changed(_HEAD + save).endswith(save.replace(_SAVED, _OUT))


def test_a_path_by_its_name() -> None:
    """xm.save has another one for it."""
    assert changed(f"{_HEAD}torch.save(model.state_dict(), f=path)\n").endswith(
        "\nxm.save(model.state_dict(), file_or_path=path)\n"
    )
    assert _saves("torch.save(model.state_dict(), f=f'{rank}.pt')\n") == []


def test_another_rank_than_the_first_saves_behind_the_loop() -> None:
    """xm.save writes on rank 0, and so nothing where that does not come."""
    save = f"if rank == world_size - 1:\n    print('saved')\n    {_SAVED}\n"
    assert changed(_HEAD + save).endswith(save)


def test_a_whole_model_out_of_its_wrapper() -> None:
    """As a whole model: it is told."""
    (found,) = _saves("torch.save(model.module, path)\n")
    assert "xm.save(model.module.state_dict(), ...)" in found


def test_a_ported_script_that_saves_on_one_rank() -> None:
    """In the loop it is a note, unless the script ends the step itself; behind the loop it is right."""
    for save in ("torch.save", "xm.save"):
        inside = HEAD + LOOP + f"    if xm.is_master_ordinal():\n        {save}(model.state_dict(), path)\n"
        (found,) = said(inside)
        assert (
            found.startswith("14: note: one process alone saves in the loop") and "torch_xla.sync()" in found
        )
        assert said(inside.replace("    if xm", "    torch_xla.sync()\n    if xm")) == []
        assert said(inside.replace("    if xm", "if xm").replace("        ", "    ")) == []
    assert said(HEAD + LOOP + "    xm.save(model.state_dict(), path)\n") == []


def test_behind_the_loop_one_rank_may_save() -> None:
    """All steps have run there. Up to 2.0 xm.save waits for all processes."""
    save = f"if rank == 0:\n    print('saved')\n    {_SAVED}\n"
    assert changed(_HEAD + save).endswith(save.replace(_SAVED, _OUT))
    assert "outside of" not in _saves(save)[0]
    assert "as one alone would wait" in _saves(save, "1.13")[0]
    assert _OUT not in diff(script(_HEAD + save), "1.13")


def test_a_function_that_one_rank_calls() -> None:
    """The test stands around its call: in the loop told, behind it edited in place."""
    text = _HEAD.replace("torch.manual", f"def save():\n    {_SAVED}\ntorch.manual")
    called = text + "    if rank == 0: save()\n"
    (found,) = [one for one in read(script(called)) if "torch.save:" in one.text]
    assert "as one alone would wait" in found.text and not found.edits
    assert f"    {_OUT}\n" in changed(text + "if rank == 0: save()\n")


def test_a_state_that_is_handed_to_a_function() -> None:
    """As the ImageNet example has it: what is saved are tensors of the device, though the function does not say so."""
    function = "def save(state, path):\n    torch.save(state, path)\n"
    (found,) = _saves(f"{function}save({{'model': model.state_dict()}}, path)\n")
    assert "every rank saves tensors of the device" in found
    assert _saves(f"{function}save(losses, path)\n") == []
    assert _saves(f"{function}save({{k: v.cpu() for k, v in model.state_dict().items()}}, path)\n") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with open(path, 'wb') as f:\n    torch.save(model.state_dict(), f)\n",) * 2,
        ("f = open(path, 'wb')\ntorch.save(model.state_dict(), f)\n",) * 2,
        ("torch.save(model.state_dict(), open(path, 'wb'))\n", "xm.save(model.state_dict(), path)\n"),
        ("torch.save(model.state_dict(), f=open(path, 'wb'))\n",
         "xm.save(model.state_dict(), file_or_path=path)\n"),
    ],
)  # fmt: skip
def test_a_file_that_each_process_opens(before: str, after: str) -> None:
    """And empties: xm.save would write it on rank 0, while the others open it. It takes the path."""
    (found,) = _saves(before)
    assert "Each process that opens the file empties it: give xm.save the path" in found
    assert changed(_HEAD + before).endswith(f"\n{after}")
    alone = f"if rank == 0:\n    {before.strip().replace(chr(10), chr(10) + '    ')}\n"
    assert "empties it" not in _saves(alone)[0]
    ported = HEAD + LOOP + before.replace("torch.save", "xm.save")
    (found,) = said(f'import os\npath = os.environ["SM_MODEL_DIR"]\n{ported}')
    assert "rank 0 alone writes here. Each process that opens the file empties it" in found


def test_a_file_of_each_rank_that_is_opened() -> None:
    """By its name, and none in memory."""
    for file in ("open(f'{rank}.pt', 'wb')", "io.BytesIO()"):
        assert _saves(f"with {file} as f:\n    torch.save(model.state_dict(), f)\n") == []


def test_a_model_that_is_pickled() -> None:
    """Its tensors are of the device for pickle, too; other things are not."""
    save = "import pickle\nwith open(path, 'wb') as f:\n    pickle.dump(model.state_dict(), f)\n"
    found = [one for one in read(script(_HEAD + save)) if "pickle.dump:" in one.text]
    assert (
        "every rank saves tensors of the device, over the others' file. xm.save moves them" in found[0].text
    )
    assert changed(_HEAD + save).endswith(save)
    alone = save.replace("with", "if rank == 0: f =").replace(" as f:\n    ", "\nif rank == 0: ")
    (one,) = [str(one) for one in read(script(_HEAD + alone)) if "pickle.dump:" in one.text]
    assert "pickle.dump: tensors of the device." in one
    for other in ("words", "model.cpu().state_dict()"):
        text = _HEAD + save.replace("model.state_dict()", other)
        assert not any("pickle.dump:" in one.text for one in read(script(text)))


@pytest.mark.parametrize(
    "saved",
    [
        "model(batch.cuda())",
        "{'loss': loss, 'step': step}",
        "features",
        "model.fc.weight",
        "list(model.parameters())",
        "queue",
        "[one.detach() for one in features]",
        "(step, features[0])",
        "torch.stack(features).mean(0) / 2",
        "handed(features)",
    ],
)
def test_tensors_of_the_device_that_are_saved(saved: str) -> None:
    """What a model gives, its weights, and what was moved there; each rank writes over the others' file."""
    made = "features = []\nfeatures.append(model(batch))\nweights = model.state_dict()\nqueue = torch.zeros(9).cuda()\n"
    save = f"torch.save({saved}, path)\n"
    if saved.startswith("handed"):
        save = "def handed(what):\n    torch.save(what, path)\nhanded(features)\n"
    (found,) = _saves(made + save)
    assert "every rank saves tensors of the device" in found
    assert "xm.save(" in changed(_HEAD + made + save)


@pytest.mark.parametrize("path", ["f'{name}.pt'", "os.path.join(out, name)", "file"])
def test_a_file_for_each_sample(path: str) -> None:
    """Of each rank's own: xm.save would write those of rank 0 alone."""
    loop = f"for name, one in samples:\n    file = name + '.pt'\n    torch.save(model(one.cuda()), {path})\n"
    assert _saves(loop) == []
    assert len(_saves(loop.replace(f", {path})", ", 'last.pt')"))) == 1


@pytest.mark.parametrize(
    "saved",
    [
        "model.config",
        "{'step': step, 'losses': losses}",
        "[loss.item() for loss in every]",
        "model(batch).cpu()",
        "model(batch).to('cpu')",
        "features",
        "{'lr': optimizer.param_groups[0]['lr']}",
        "evaluate(model)",
        "torch.tensor(losses)",
        "batch",
        "kept",
    ],
)
def test_what_the_host_has_is_saved(saved: str) -> None:
    """Results, settings, and what was fetched: each rank writes the same, or its own."""
    made = "losses, features = [], []\nlosses = []\nlosses.append(loss.item())\nfeatures.append(out.cpu().numpy())\n"
    made += "kept = [one.item() for one in loss]\nkept.extend(loss.tolist())\n"
    assert _saves(f"{made}torch.save({saved}, path)\n") == []


def test_a_whole_model_of_an_object() -> None:
    """Whose class trains it under a name of its own; another attribute of that name is none."""
    owner = (
        "class Solver:\n    def __init__(self):\n        self.net = build()\n        self.net.parameters()\n"
    )
    (found,) = _saves(f"{owner}solver = Solver()\ntorch.save(solver.net, path)\n")
    assert "xm.save(solver.net.state_dict(), ...)" in found
    assert _saves(f"{owner}torch.save(args.net, path)\n") == []
    assert _saves(f"{owner}solver = Solver()\ntorch.save(solver.losses, path)\n") == []


def test_a_method_that_is_called_save() -> None:
    """torch.save in it is no call of it: one rank alone calls it."""
    method = f"class Agent:\n    def save(self):\n        {_SAVED}\nagent = Agent()\n"
    assert "every rank saves" not in _saves(f"{method}if rank == 0:\n    agent.save()\n")[0]
    assert "every rank saves" in _saves(f"{method}agent.save()\n")[0]


def test_a_copy_of_a_state() -> None:
    """As an average of the weights: it is of the device as these are."""
    made = "shadow = {k: v.clone().detach() for k, v in model.state_dict().items()}\n"
    (found,) = _saves(f"{made}torch.save(shadow, path)\n")
    assert "every rank saves tensors of the device" in found
    owner = f"class Ema:\n    def __init__(self, model):\n        self.{made}ema = Ema(model)\n"
    (found,) = _saves(f"{owner}torch.save(ema.shadow, path)\n")
    assert "every rank saves tensors of the device" in found
    assert _saves(f"{owner.replace('v.clone()', 'v.clone().cpu()')}torch.save(ema.shadow, path)\n") == []
    assert _saves(f"{owner}torch.save(ema.decay, path)\ntorch.save(args.shadow, path)\n") == []


def test_a_function_that_saves_what_has_been_trained() -> None:
    """Called behind the training, or in it; with a model that has gone to the host it does not raise."""
    text = f"{HEAD}def save(model):\n    model.save_pretrained(folder)\n{LOOP}"
    (found,) = said(f"{text}save(model)\n")
    assert 'model.to("cpu") before it' in found
    assert said(f"{text}model.cpu()\nsave(model)\n") == said(text) == []


_TRAINED = """\
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer
from peft import PeftModel
def train(args):
    model = AutoModelForCausalLM.from_pretrained(args.model_id)
    trainer = Trainer(model=model, args=args)
    trainer.train()
"""


def test_a_model_that_is_loaded_behind_the_training_is_on_the_host() -> None:
    """As where an adapter is merged into its base."""
    merged = f"""{_TRAINED}\
    base = AutoModelForCausalLM.from_pretrained(args.model_id)
    model = PeftModel.from_pretrained(base, "adapter")
    model = model.merge_and_unload()
    model.save_pretrained(args.out)
"""
    assert said(merged, "save_pretrained") == []
    (found,) = [
        one
        for one in said(merged.replace("    model.save", "    model.to(device)\n    model.save"))
        if "save_pretrained" in one
    ]
    assert found.startswith("11: ")
    (found,) = [
        one
        for one in said(f"{_TRAINED}    model = model.merge_and_unload()\n    model.save_pretrained(out)\n")
        if "save_pretrained" in one
    ]
    assert 'model.to("cpu") before it' in found
    at_once = _TRAINED.replace(
        "trainer = Trainer(model=model, args=args)\n    trainer.", "Trainer(model, args)."
    )
    assert "Trainer(model, args).train()" in at_once
    assert len(said(f"{at_once}    model.save_pretrained(out)\n", "save_pretrained")) == 1


def test_a_tokenizer_is_no_model_whatever_its_files_are_called() -> None:
    text = f"{_TRAINED}    AutoTokenizer.from_pretrained(args.model_id).save_pretrained(args.out)\n"
    assert said(text, "save_pretrained") == []


def test_a_class_of_the_scripts_own_saves_as_it_likes() -> None:
    """safetensors is not asked where a class has a `save_pretrained` of its own."""
    own = "class Own(torch.nn.Module):\n    def save_pretrained(self, path):\n        write(self, path)\n"
    for made, told in (("Own()", []), ("Other()", ["save_pretrained"])):
        text = f"{HEAD}{own}model = {made}.to(device)\n{LOOP}model.save_pretrained(folder)\n"
        assert ["save_pretrained" for _ in said(text, "safetensors")] == told
