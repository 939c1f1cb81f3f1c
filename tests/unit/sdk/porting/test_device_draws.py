"""Random numbers that the device draws in steps, what seeds them, and what keeps their state: torch.manual_seed by the
rank makes them differ on GPUs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sdk.porting.test_data_without_loader import ON_DEVICE
from tests.unit.sdk.porting.test_data_without_loader import told as draws_alike
from tests.unit.sdk.porting.test_patch import changed
from tests.unit.sdk.porting.test_program import HEAD, LOOP, said
from windtunnel.porting.program import read_program
from windtunnel.porting.script import Script
from windtunnel.porting.topics import device_draws
from windtunnel.porting.topics.step_ends import within

_SEED = "torch.manual_seed(1234 + rank)\n"
_MODEL = "model = Net().to(device)\nxm.broadcast_master_param(model)\n"
_NOISE = LOOP.replace("    loss =", "    noise = torch.randn_like(batch)\n    loss =")
_FORWARD = """\
class Net(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn(8, device=x.device)
"""
_SAMPLES = """\
@torch.no_grad()
def sample():
    return model(torch.randn(8, device=device))
"""


@pytest.mark.parametrize(
    ("text", "draws"),
    [
        (HEAD + _SEED + _MODEL + _NOISE, "torch.randn_like in line 13"),
        (HEAD + _FORWARD + _SEED + _MODEL + LOOP, "torch.randn in line 9"),
        (HEAD + _SEED + _MODEL + _NOISE.replace("randn_like(batch)", "randint(0, 9, (8,), device=device)"),
         "torch.randint in line 13"),
        (HEAD + _SEED + _MODEL + _NOISE.replace("in pl.MpDeviceLoader(loader, device)", "in range(9)")
         .replace("randn_like(batch)", "randn(8, device=device)"), "torch.randn in line 13"),
        (HEAD + "def seeds(seed):\n    torch.manual_seed(seed)\nseeds(args.seed + rank)\n" + _MODEL + _NOISE,
         "torch.randn_like in line 15"),
    ],
)  # fmt: skip
def test_a_seed_by_the_rank_is_given_to_the_device_too(text: str, draws: str) -> None:
    """Two cores of torch_xla 2.9 drew the same after torch.manual_seed(1234 + rank)."""
    (found,) = said(text, "seeds a GPU, and no NeuronCore")
    assert draws in found and "note" not in found
    made = changed(text)
    seed = "seed" if "seeds(" in text else "1234 + rank"
    assert f"torch.manual_seed({seed})\n" in made
    assert made.replace(" " * 4, "").count(f"torch.manual_seed({seed})\nxm.set_rng_state({seed})\n") == 1
    assert said(made, "the same numbers") == []


def test_dropout_alone() -> None:
    """A note beside the edit. Of a seed that is the same everywhere nothing is said: so it is on GPUs."""
    net = "net = torch.nn.Dropout(0.1)\n"
    text = HEAD + _SEED + _MODEL + net + LOOP
    (found,) = said(text, "seeds a GPU, and no NeuronCore")
    assert "note: " in found and "(dropout)" in found and "xm.set_rng_state(1234 + rank)\n" in changed(text)
    assert said(text.replace("1234 + rank", "1234"), "the same numbers") == []


@pytest.mark.parametrize("seed", ["", "torch.manual_seed(0)\n", "xm.set_rng_state(7)\n"])
def test_noise_without_a_seed_by_the_rank(seed: str) -> None:
    """A note, once: on GPUs it differs if nothing seeds it."""
    text = HEAD + seed + _MODEL + _NOISE.replace("loss =", "t = torch.rand_like(batch)\n    loss =", 1)
    (found,) = said(text, "the same numbers")
    assert ": note: every core draws the same numbers with torch.randn_like: " in found
    assert "xm.set_rng_state(seed + xr.global_ordinal())" in found


@pytest.mark.parametrize(
    "text",
    [
        _SEED + "xm.set_rng_state(1234 + rank)\n" + _MODEL + _NOISE,
        "import time\nxm.set_rng_state(int(time.time()))\n" + _MODEL + _NOISE,
        _SEED + _MODEL + LOOP,
        _SEED + _MODEL + _NOISE.replace("_like(batch)", "(8)"),
        _MODEL + _NOISE.replace("_like(batch)", "(8, device='cpu')"),
        _MODEL + _NOISE.replace("_like(batch)", "_like(batch, generator=own)"),
        _MODEL + _SAMPLES + LOOP + "    sample()\n",
        _MODEL + _NOISE + "model = parallelize_module(model, mesh, plan)\n",
    ],
)
def test_numbers_that_differ_or_need_not(text: str) -> None:
    """Seeded by the rank or by chance, drawn on the host, or drawn to look at samples."""
    assert said(HEAD + text, "the same numbers") == []
    assert said(HEAD + _SEED + _MODEL + _NOISE, "the same numbers", several=False) == []


@pytest.mark.parametrize("drawn", ["torch.nn.init.normal_(model.weight)\n", "model.apply(weights_init)\n"])
def test_no_seed_of_the_device_is_put_before_weights_that_it_draws(drawn: str) -> None:
    """They would differ, where one seed of all devices made them alike: so the place is the reader's to choose."""
    text = HEAD + _SEED + "model = Net().to(device)\n" + drawn + _NOISE
    (found,) = said(text, "seeds a GPU, and no NeuronCore")
    assert "once all weights are drawn" in found
    assert "set_rng_state" not in changed(text)


@pytest.mark.parametrize(
    ("other", "is_seeded"),
    [
        ("torch.set_rng_state(torch.get_rng_state())", False),
        ("mine.set_rng_state(1)", False),
        ("import torch_xla.core.xla_model as xm\nxm.set_rng_state(1)", True),
        ("import torch_xla\ntorch_xla.manual_seed(1)", True),
    ],
)
def test_a_seed_of_the_gpu_beside_another(other: str, is_seeded: bool) -> None:
    """torch.set_rng_state is of the host's numbers: beside it the device still needs a seed."""
    text = changed(f"import torch\ntorch.cuda.manual_seed(0)\n{other}\n")
    assert ("xm.set_rng_state(0)" in text) is not is_seeded


def test_the_hosts_state_is_not_the_devices() -> None:
    """Restoring it by rank tells the device's numbers apart no more than torch.manual_seed does."""
    assert draws_alike(ON_DEVICE + "torch.set_rng_state(states[rank])\n")
    assert draws_alike(ON_DEVICE + "torch_xla.manual_seed(rank)\n") == []


@pytest.mark.parametrize("call", ["get_rng_state_all()", "set_rng_state_all(kept)", "get_rng_state()"])
def test_the_state_that_a_checkpoint_keeps(call: str) -> None:
    """torch_xla has one, too: a script that resumes need not do without."""
    (found,) = said(f"import torch\nstate = torch.cuda.{call}\n", "rng_state")
    assert "xm.get_rng_state() gives" in found and "xm.set_rng_state(number) sets it" in found
    assert "Leave it out" not in found


def test_each_loop_of_a_program_is_gone_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file asks for the draws of all files: for yolov5's 34 files that took two minutes."""
    gone_through: list[Any] = []

    def counted(*of: Any) -> Iterator[Any]:
        gone_through.append(of)
        return within(*of)

    monkeypatch.setattr(device_draws, "within", counted)
    files = [tmp_path / f"{name}.py" for name in "abc"]
    for file in files:
        file.write_text(HEAD + _SEED + _MODEL + _NOISE)
    assert all(read_program([*map(Script, files)]).values())
    assert len(gone_through) == len(set(gone_through)) == len(files)
