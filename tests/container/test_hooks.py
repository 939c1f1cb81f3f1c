"""The table of hooks is all that changes in torch and torch_xla, and its order is the order of calls."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import SCRIPTS

from neuron_sim.errors import NeuronSimError
from neuron_sim.hooks.hook import Hook, install


def test_the_table_names_all_that_is_changed(tmp_path: Path) -> None:
    """Whoever reads it knows every function of torch and torch_xla that is not the original one."""
    environment = {**os.environ, "SAY_TO": str(tmp_path / "said")}
    subprocess.run([sys.executable, str(SCRIPTS / "hooked.py"), "2.9", "2.1"], env=environment, check=True)
    newest, oldest = map(json.loads, re.findall("SAY (.*)", (tmp_path / "said.0").read_text()))
    assert newest["changed"] == newest["table"]
    assert oldest["changed"] == oldest["table"]
    assert oldest["table"] != newest["table"]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with an entry point for the hooks of a test."""
    module = ModuleType("of_a_test")
    module.calls = []
    module.entry = lambda: module.calls.append("entry")
    monkeypatch.setitem(sys.modules, "of_a_test", module)
    return module


def test_the_line_of_an_entry_point_is_the_order_of_its_calls(module: ModuleType) -> None:
    """First the cores are claimed, once; then before, around from the outermost on, the entry point, after."""

    def around(name):
        def wrap(function):
            def call():
                module.calls.append(name)
                function()

            return call

        return wrap

    def noting(name):
        return lambda: module.calls.append(name)

    hook = Hook(
        "of_a_test:entry",
        is_device_use=True,
        before=(noting("before 1"), noting("before 2")),
        around=(around("outer"), around("inner")),
        after=(noting("after 1"), noting("after 2")),
    )
    install([hook], claim=noting("claim"))
    usual = ["before 1", "before 2", "outer", "inner", "entry", "after 1", "after 2"]
    module.entry()
    module.entry()
    assert module.calls == ["claim", *usual, *usual]


def test_a_module_gets_its_hooks_when_somebody_imports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are for it; it is not imported for their sake."""
    (tmp_path / "imported_later.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    monkeypatch.syspath_prepend(tmp_path)

    def plus_ten(function):
        return lambda: function() + 10

    install([Hook(f"imported_later:{name}", around=(plus_ten,)) for name in ("one", "two")], claim=list)
    assert "imported_later" not in sys.modules
    later = importlib.import_module("imported_later")
    assert (later.one(), later.two()) == (11, 12)


def test_an_entry_point_has_one_line(module: ModuleType) -> None:
    """Two lines would be two wrappers, in an order that stands nowhere."""
    hook = Hook("of_a_test:another", instead=len, is_new=True)
    with pytest.raises(NeuronSimError, match="of_a_test:another has two lines"):
        install([hook, hook], claim=list)


@pytest.mark.parametrize("steps", ["", "5"])
def test_what_a_script_s_own_classes_refuse_ends_no_job(torchrun, tmp_path, steps):
    """A length that is not known, a key in place of an attribute, objects that are compared, groups of parameters."""
    rehearsal = {"WINDTUNNEL_REHEARSE_STEPS": steps} if steps else {}
    launch = torchrun("odd_objects.py", workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path), **rehearsal)
    assert "the end" in launch.output


SCRIPTED = """
import torch, torch_xla
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 8)
    def forward(self, x):
        return self.lstm(x)[0]
torch_xla.device()
model = Model()
x = torch.ones(2, 3, 4)
assert torch.equal(torch.jit.script(model)(x), model(x))
"""


def test_torchscript_takes_an_lstm(torchrun, tmp_path):
    """It knows torch's functions by what they are, not by their names: an LSTM's could no longer be compiled."""
    script = tmp_path / "scripted.py"
    script.write_text(SCRIPTED)
    torchrun(str(script), workers=1)


BEHIND = """
import warnings
import torch, torch_xla
warnings.showwarning = lambda message, category, file, line, *_: print("warned", file, line, message, flush=True)
one = torch.ones(1, requires_grad=True, device=torch_xla.device())
float(one)
torch.ones(2, device=torch_xla.device()).item()
"""


def test_torch_s_warnings_and_errors_behind_a_hook_are_the_script_s(torchrun, tmp_path):
    """They name its lines, and none of the simulator's."""
    script = tmp_path / "behind.py"
    script.write_text(BEHIND)
    launch = torchrun(str(script), workers=1, check=False)
    assert f"warned {script} 6 Converting a tensor with requires_grad=True" in launch.output
    traceback, _, _ = launch.output.partition("Tensor with 2 elements cannot be converted to Scalar")
    assert traceback.count(f'File "{script}", line 7, in <module>') == 1
    assert "neuron_sim" not in traceback.partition("Traceback")[2]
