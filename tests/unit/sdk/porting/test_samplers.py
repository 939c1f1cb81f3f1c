"""Samplers that divide nothing: with one each core goes through all of the data."""

from __future__ import annotations

import textwrap

import pytest

from tests.unit.sdk.porting.test_patch import changed, script
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read_program

_TEXT = (HEAD + LOOP).replace(", DistributedSampler", ", RandomSampler")
_EPOCHS = _TEXT.replace("for batch", "for epoch in range(3):\n  for batch").replace("\n    ", "\n      ")


@pytest.mark.parametrize("sampler", ["RandomSampler(data)", "RandomSampler(data, replacement=True)",
                                     "SubsetRandomSampler(train)", "own", "None",
                                     "RandomSampler(data) if new else SequentialSampler(data)"])  # fmt: skip
def test_a_sampler_of_all_the_data(sampler: str) -> None:
    """Any sampler passed for one that shares the data out."""
    text = _TEXT.replace("DistributedSampler(data)", sampler).replace(
        "device =", "own = RandomSampler(data)\ndevice ="
    )
    (found,) = said(text, "same_data")
    assert "every core gets the same batches" in found


@pytest.mark.parametrize(
    "sampler",
    ["mine(data)", "DistributedSampler(data)", "argument", "SubsetRandomSampler(every[rank::cores])",
     "RandomSampler(data) if one else mine(data)"],
)  # fmt: skip
def test_a_sampler_that_may_share(sampler: str) -> None:
    """Of the script's own, or not known."""
    assert said(_TEXT.replace("DistributedSampler(data)", sampler), "same_data") == []


def test_torchdatas_loader_is_one() -> None:
    """It takes what torch's takes; nothing was said of it."""
    text = _EPOCHS.replace("from torch.utils.data import DataLoader, ", "from torch.utils.data import ")
    text = "from torchdata.stateful_dataloader import StatefulDataLoader\n" + text
    text = text.replace(
        "DataLoader(data, sampler=DistributedSampler(data))", "StatefulDataLoader(data, batch_size=8)"
    )
    (found,) = said(text, "same_data")
    assert "every core gets the same batches" in found
    assert said(text, "ragged_batch")
    made = changed(text)
    assert "loader = StatefulDataLoader(data, batch_size=8, sampler=sampler" in made
    assert "  loader.sampler.set_epoch(epoch)\n" in made


def test_the_edit_of_a_random_sampler() -> None:
    """It shuffles as before, where it has nothing more to say than the data; else it stays and is told."""
    text = _EPOCHS.replace("sampler=DistributedSampler(data)", "batch_size=8, sampler=RandomSampler(data)")
    made = changed(text)
    assert "sampler = DistributedSampler(data, num_replicas=xr.world_size(), " in made
    assert "shuffle=True)\nloader = DataLoader(data, batch_size=8, sampler=sampler)\n" in made
    assert "  loader.sampler.set_epoch(epoch)\n" in made
    more = text.replace("RandomSampler(data)", "RandomSampler(data, num_samples=9)")
    assert "RandomSampler(data, num_samples=9)" in changed(more)


@pytest.mark.parametrize(
    ("made", "taken", "told"),
    [
        ("cycle(DataLoader(data, batch_size=8))", "next(batches)", 1),
        ("iter(loader)", "next(batches)", 1),
        ("iter(loader)", "next(batches)[0]", 1),
        ("cycle(DataLoader(data, sampler=DistributedSampler(data)))", "next(batches)", 0),
        ("cycle(other)", "next(batches)", 0),
        ("iter(loader)", "fixed\n    if step % 100 == 0:\n        evaluate(model, next(batches))", 0),
    ],
)
def test_batches_that_a_loop_takes_with_next(made: str, taken: str, told: int) -> None:
    """Of a loader that begins anew for ever, as where steps are counted; not what is evaluated now and then."""
    loop = LOOP[LOOP.index("for batch") :].replace(
        "batch in pl.MpDeviceLoader(loader, device)", "step in range(9)"
    )
    loop = loop.replace("    loss =", f"    batch = {taken}\n    loss =", 1)
    text = f"{HEAD}optimizer = torch.optim.SGD(model.parameters())\nloader = DataLoader(data)\nbatches = {made}\n{loop}"
    assert len(said(text.replace(", DistributedSampler", ""), "same_data")) == told


_FUNCTION = """\
import torch, torch_xla.distributed.xla_backend
from torch.utils.data import DataLoader
def run(model, loader, optimizer=None):
    for batch in loader:
        model(batch.cuda()).sum().backward()
        optimizer.step()
def main():
    train = DataLoader(data, batch_size=8, shuffle=True)
    held_out = DataLoader(other, batch_size=8)
    for epoch in range(3):
        loss = run(model, train, optimizer)
"""
_EPOCH = _FUNCTION.replace("loader, opt", "loader, epoch, opt").replace("train, opt", "train, epoch, opt")
_SET = "train.sampler.set_epoch(epoch)"


def test_the_epoch_where_a_function_goes_over_the_loader() -> None:
    """That does not know it: it is set where it is called."""
    assert f"    for epoch in range(3):\n        {_SET}\n        loss = run(" in changed(_FUNCTION)
    assert changed(_FUNCTION).count("set_epoch") == 1
    at, end = _FUNCTION.index("def run"), _FUNCTION.index("def main")
    method = textwrap.indent(_FUNCTION[at:end].replace("run(", "run(self, "), "    ")
    of_a_class = (
        f"{_FUNCTION[:at]}class Runner:\n{method}{_FUNCTION[end:].replace('= run', '= Runner().run')}"
    )
    assert said(of_a_class, "same_data")
    assert "    loader.sampler.set_epoch(epoch)\n    for batch in" in changed(_EPOCH)
    assert changed(_EPOCH).count("set_epoch") == 1


@pytest.mark.parametrize("text", [_FUNCTION, _EPOCH])
def test_a_function_that_goes_over_other_loaders_too(text: str) -> None:
    """Whose samplers have no set_epoch, and raised."""
    epoch = "epoch, " if text is _EPOCH else ""
    made = changed(f"{text}        run(model, held_out, {epoch}None)\n")
    assert f"        {_SET}\n        loss = run(" in made and made.count("set_epoch") == 1


def test_a_loader_of_an_object() -> None:
    """Both methods have it by its name."""
    text = _FUNCTION.replace("def main():\n    train", "def main(self):\n    self.train").replace(
        "loader,", "self,"
    )
    text = text.replace("run(model, train, ", "self.run(model, ").replace("in loader", "in self.train")
    text = text.replace("model, self", "self, model")
    lines = text.splitlines(keepends=True)
    text = "".join([*lines[:2], "class A:\n", *(f"    {line}" for line in lines[2:])])
    assert "            self.train.sampler.set_epoch(epoch)\n            loss = self.run(" in changed(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for epoch in range(3)", "while epochs"),
        ("loss = run(model, train, optimizer)", "if run(model, train, optimizer): pass"),
        ("run(model, train, optimizer)", "run(model, [train][0], optimizer)"),
        ("    for epoch in range(3):\n    ", ""),
    ],
)
def test_an_epoch_that_is_not_known(old: str, new: str) -> None:
    """No edit is sure: the sampler shuffles as in the first."""
    assert "set_epoch" not in changed(_FUNCTION.replace(old, new))


def test_an_epoch_that_is_set_already() -> None:
    """Where the function does it, it is not set once more."""
    sets = _FUNCTION.replace(
        "    for batch", "    getattr(loader.sampler, 'set_epoch', print)(0)\n    for batch", 1
    )
    assert changed(sets).count("set_epoch") == 1
    sets = _FUNCTION.replace("        loss", "        set_epoch(train, epoch)\n        loss", 1)
    assert changed(sets).count("set_epoch") == 1


def test_a_loader_that_is_evaluated_alone() -> None:
    """By a function whose parameter has the name that the training function's has: it is no loader of the training."""
    text = _FUNCTION.replace(
        "def main",
        "def test(model, loader):\n    for batch in loader:\n        model(batch.cuda())\ndef main",
    )
    text += "    test(model, held_out)\n"
    assert [one.partition(":")[0] for one in said(text, "same_data")] == ["11"]
    assert [one.partition(":")[0] for one in said(f"{text}    run(model, held_out)\n", "same_data")] == [
        "11",
        "12",
    ]


_MADE = "train = DataLoader(data, batch_size=8, shuffle=True)"
_DIVIDED = "num_replicas=xr.world_size(), rank=xr.global_ordinal()"


def test_a_data_set_that_is_made_where_it_is_given() -> None:
    """It gets a name, for the sampler has it too; one that is free."""
    text = _FUNCTION.replace(
        _MADE, "train = DataLoader(Images(\n        'train', True), batch_size=8, shuffle=True)"
    )
    made = changed(text)
    assert (
        f"    dataset = Images(\n        'train', True)\n    sampler = DistributedSampler(dataset, {_DIVIDED}"
        in made
    )
    assert "    train = DataLoader(dataset, batch_size=8, sampler=sampler)\n" in made
    assert "    loader_dataset = Images(" in changed(f"dataset = 1\n{text}")


@pytest.mark.parametrize(
    ("options", "call", "shuffle"),
    [
        ("k = {'num_workers': 1} if fast else {}", "data, batch_size=8, shuffle=True, **k", None),
        ("k = {'batch_size': 8}\n    if fast:\n        k.update({'shuffle': True})", "data, **k", "k"),
        ("k = dict(batch_size=8)", "data, num_workers=2, **k", "k"),
    ],
)
def test_a_loader_whose_arguments_are_in_a_dict(options: str, call: str, shuffle: str | None) -> None:
    """The sampler shuffles as that says; a loader takes no sampler and shuffles."""
    made = changed(_FUNCTION.replace(_MADE, f"{options}\n    train = DataLoader({call})"))
    asked = 'k.get("shuffle", False)' if shuffle else "True"
    assert f"    sampler = DistributedSampler(data, {_DIVIDED}, shuffle={asked})\n" in made
    given = call.replace("**k", 'sampler=sampler, **{**k, "shuffle": False}')
    assert f"DataLoader({given if shuffle else call.replace('shuffle=True', 'sampler=sampler')})" in made


@pytest.mark.parametrize(
    "options", ["k = given()", "k = {'sampler': own}", "k = {}\n    k['batch_sampler'] = own", "k, n = {}, 1"]
)
def test_a_dict_that_may_hold_a_sampler(options: str) -> None:
    """No edit is sure."""
    assert "DistributedSampler(" not in changed(
        _FUNCTION.replace(_MADE, f"{options}\n    train = DataLoader(data, **k)")
    )


_NONE = "own = None\nif args.several:\n    own = DistributedSampler(data)\n"


@pytest.mark.parametrize(("made", "is_told"), [("own = None\n", True), (_NONE, False)])
def test_no_sampler_by_a_name(made: str, is_told: bool) -> None:
    """As scripts have it that were written for one process, with a place for those of several."""
    text = _TEXT.replace("sampler=DistributedSampler(data)", "shuffle=(own is None), sampler=own")
    assert bool(said(text.replace("device =", f"{made}device =", 1), "same_data")) is is_told


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ("dict(batch_size=8)", True),
        ("{'batch_size': 8}", True),
        ("dict(batch_size=8, drop_last=True)", False),
        ("{'batch_size': 8, 'drop_last': True}", False),
        ("load()", False),
    ],
)
def test_a_last_batch_of_options_that_stand_elsewhere(options: str, is_told: bool) -> None:
    """The log found it, and check did not."""
    text = _TEXT.replace("sampler=RandomSampler(data)", "shuffle=True, **options")
    text = text.replace("sampler=DistributedSampler(data)", "shuffle=True, **options")
    made = text.replace("device =", f"options = {options}\ndevice =", 1)
    assert bool(said(made, "ragged_batch")) is is_told


@pytest.mark.parametrize(
    ("options", "is_told"), [("shuffle=True", True), ("sampler=DistributedSampler(d)", False)]
)
def test_a_loader_that_a_function_of_another_file_makes(options: str, is_told: bool) -> None:
    """As MelGAN's: every core had the same batches, and nothing was said."""
    data = (
        f"from torch.utils.data import *\ndef build(d):\n    return DataLoader(d, batch_size=8, {options})\n"
    )
    first = "from data import build\nfrom work import train\nloader = build(load())\ntrain(model, loader)\n"
    work = (
        "import torch\ndef train(model, loader):\n    for x in loader:\n        model(x.cuda()).backward()\n"
    )
    scripts = [script(first), script(data, "data.py"), script(work, "work.py")]
    found = [one for one in read_program(scripts)[scripts[1]] if one.kind == "same_data"]
    assert [one.line for one in found] == ([3] if is_told else [])


_SEVERAL = """\
def loaders():
    train = DataLoader(data, batch_size=8, shuffle=True)
    return train, DataLoader(held_out, batch_size=8)
loader, other = loaders()
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("loader, other = loaders()", "loader, other = DataLoader(data, batch_size=8, shuffle=True), None"),
        ("return train, DataLoader(held_out, batch_size=8)", "return (train, 0)"),
        ("loader, other = loaders()", "[loader, other] = loaders()"),
    ],
)
def test_one_of_several_loaders_that_a_function_returns(old: str, new: str) -> None:
    """As most scripts with a file for their data have it."""
    made = _SEVERAL.replace(old, new)
    text = _TEXT.replace("loader = DataLoader(data, sampler=DistributedSampler(data))\n", made)
    assert len(said(text, "same_data")) == 1
    assert said(text.replace("loader, other = loaders()", "other, loader = loaders()", 1), "same_data") or old
    (ragged,) = said(text, "ragged_batch")
    assert "the last batch is smaller" in ragged
    assert said(text.replace("shuffle=True", "sampler=DistributedSampler(data)"), "same_data") == []


def test_several_loaders_of_another_file() -> None:
    """Each is told where it is made; one that is only evaluated need not be divided."""
    data = "from torch.utils.data import *\n" + _SEVERAL.partition("loader, other")[0]
    first = "import torch\nfrom data import loaders\na, b = loaders()\nfor x in a:\n    model(x.cuda()).backward()\n"
    scripts = [script(first), script(data, "data.py")]
    found = [(one.line, one.kind) for one in read_program(scripts)[scripts[1]]]
    assert found == [(3, "same_data"), (3, "ragged_batch")]


def test_a_loader_of_a_method() -> None:
    """As a trainer's own `self.loader()`."""
    made = "class Work:\n    def get(self):\n        return DataLoader(data, batch_size=8)\n    def work(self):\n"
    loop = "        for x in self.get():\n            model(x.to(device)).backward()\n"
    named = "        loader = self.get()\n" + loop.replace("self.get()", "loader")
    assert [bool(said(HEAD + made + one, "ragged_batch")) for one in (named, loop)] == [True, False]


@pytest.mark.parametrize(
    "loop",
    [
        "fast = pl.MpDeviceLoader(loader, device)\nfor batch in fast:\n    model(batch).backward()\n",
        "def train(batches):\n    for batch in batches:\n        model(batch).backward()\n"
        "train(pl.MpDeviceLoader(loader, device))\n",
        "def train(batches):\n    for batch in batches:\n        model(batch).backward()\n"
        "fast = pl.MpDeviceLoader(loader=loader, device=device)\ntrain(fast)\n",
        "fast = pl.MpDeviceLoader(DataLoader(data, batch_size=8), device)\n"
        "for batch in fast:\n    model(batch).backward()\n",
    ],
)
def test_a_loader_that_was_wrapped_before_the_loop(loop: str) -> None:
    """As AWS's scripts do."""
    head = HEAD.replace(", DistributedSampler", "")
    text = f"{head}loader = DataLoader(data, batch_size=8)\n{loop}"
    assert [len(said(text, kind)) for kind in ("same_data", "ragged_batch")] == [1, 1]
    shared = text.replace("batch_size=8", "batch_size=8, sampler=mine, drop_last=True")
    assert said(shared, "same_data") == said(shared, "ragged_batch") == []
