"""Batches that a loop draws by itself: alike on all cores after a seed."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_DRAWN = """\
import numpy as np
torch.manual_seed(0)
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters())
for step in range(99):
    x = torch.randint(0, 9, (8, 16))
    model(x.to(device)).sum().backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
"""
_BY_FUNCTION = _DRAWN.replace("torch.randint(0, 9, (8, 16))", "batch()").replace(
    "model =", "def batch():\n    return data[torch.randperm(len(data))[:8]]\nmodel =", 1
)


def told(text: str) -> list[str]:
    return said(HEAD + text, "draws the same numbers")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (_DRAWN, 12),
        (_BY_FUNCTION, 10),
        (_DRAWN.replace("for step in range(99)", "while True"), 12),
        (_DRAWN.replace("torch.rand", "np.random.rand") + "np.random.seed(3)\n", 12),
    ],
)
def test_numbers_that_every_core_draws(text: str, line: int) -> None:
    """A note: more cores train no faster where these are the data."""
    (found,) = told(text)
    assert found.startswith(f"{line}: note: same_data: every core draws the same numbers with ")
    assert ": line " in found and "gives all the same seed" in found
    assert "manual_seed(seed + xr.global_ordinal())" in found or "np.random.seed(seed + xr." in found


ON_DEVICE = _DRAWN.replace("16))", "16), device=device)")


@pytest.mark.parametrize("seed", ["", "torch.manual_seed(0)\n", "xm.set_rng_state(0)\n"])
def test_numbers_that_the_device_draws(seed: str) -> None:
    """They are alike without a seed, and torch's is not theirs: so two cores of torch_xla 2.9 drew them here."""
    text = ON_DEVICE.replace("torch.manual_seed(0)\n", seed)
    (found,) = told(text)
    assert "with torch.randint: " in found and "xm.set_rng_state(seed + xr.global_ordinal())" in found
    assert told(text + "xm.set_rng_state(xr.global_ordinal())\n") == []


@pytest.mark.parametrize(
    "text",
    [
        _DRAWN.replace("torch.manual_seed(0)\n", ""),
        _DRAWN + "torch.manual_seed(rank)\n",
        _DRAWN.replace("manual_seed(0)", "manual_seed(7 + offset)") + "offset = xr.global_ordinal()\n",
        _DRAWN.replace("torch.randint", "np.random.randint"),
        _DRAWN.replace("(8, 16))", "(8, 16), generator=own)"),
        _DRAWN.replace("torch.manual_seed(0)\n", "").replace("16))", "16), device=torch.device('cpu'))"),
        _DRAWN.replace("in range(99)", "in stream()"),
        _DRAWN + "model = parallelize_module(model, mesh, plan)\n",
        _DRAWN.replace("    x =", "    batch = next(batches)\n    x ="),
        LOOP.replace("    loss =", "    noise = torch.randn(3)\n    loss =") + "torch.manual_seed(0)\n",
    ],
)
def test_numbers_that_differ_or_are_no_batches(text: str) -> None:
    """Without a seed each core draws its own; what goes over data of a loader has these."""
    assert told(text) == []


_SLICED = """\
torch.manual_seed(0)
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters())
for i in range(0, len(data), 8):
    model(data[i : i + 8].to(device)).sum().backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
"""


def test_data_that_nothing_shares_out() -> None:
    """A note: each core goes through all of them. What names the rank, or draws, may have data of each core's own."""
    told = said(HEAD.replace(", DistributedSampler", "") + _SLICED, "same_data")
    assert [one.partition(" nothing")[0] for one in told] == ["10: note: same_data:"]
    for other in ("data = data[xr.global_ordinal() :: 2]\n", "shuffle(data)\n", "state = env.reset()\n"):
        assert not said(HEAD.replace(", DistributedSampler", "") + other + _SLICED, "same_data")


@pytest.mark.parametrize(
    "seed", ["seed = 0\nseed += rank\ntorch.manual_seed(seed)\n", "torch.manual_seed(os.getpid())\n"]
)
def test_a_seed_that_differs(seed: str) -> None:
    """By the rank that is added to it, or by chance."""
    assert told(_DRAWN.replace("torch.manual_seed(0)\n", seed)) == []


_AGENT = """\
np.random.seed(args.seed)
state = env.reset(seed=args.seed)
chosen = torch.distributions.Categorical(logits=model(state), validate_args=False)
action = chosen.sample()
np.random.shuffle(places)
"""


@pytest.mark.parametrize(
    ("old", "new", "is_told"),
    [
        ("", "", True),
        ("args.seed)\nstate", "args.seed + rank)\nstate", False),
        ("np.random.seed(args.seed)\n", "", False),
        ("(seed=args.seed)", "()", False),
        ("chosen = torch.distributions", "chosen = mine", False),
        ("action = ", "xm.set_rng_state(args.seed + xr.global_ordinal())\naction = ", False),
        ("action = ", "optimizer.clip_master_grads(1)\naction = ", True),
    ],
)
def test_an_agent_that_plays_the_same_on_all_cores(old: str, new: str, is_told: bool) -> None:
    """As cleanrl's do: what they draw is seeded alike, and the device's numbers are alike without a seed."""
    head = HEAD.replace(", DistributedSampler", "").replace("import torch,", "import numpy as np, torch,")
    agent = _AGENT.replace(old, new) if old else _AGENT
    found = said(
        head + agent + _SLICED.replace("model = Net().to(device)\n", "model = Net().to(device)\n"),
        "same_data",
    )
    assert any("nothing here tells the cores apart" in one for one in found) is is_told
