"""A text that grows by a token in each pass."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_MODEL = """\
class GPT(torch.nn.Module):
    def generate(self, idx, count):
        for _ in range(count):
            logits = self(idx)
            idx = torch.cat((idx, logits.argmax(-1)), dim=1)
        return idx
torch.manual_seed(0)
model = GPT().to(device)
"""
_CALLED = "text = model.generate(text, 500)\n"


def _told(text: str) -> list[str]:
    return [one.partition(":")[0] for one in said(HEAD + text) if "note: growing_graphs: idx grows" in one]


def test_a_model_that_generates() -> None:
    """As minGPT's samples between its steps."""
    assert _told(_MODEL + LOOP + _CALLED) == ["11"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_CALLED, ""),
        ("generate", "forward"),
        ("torch.cat((idx, ", "torch.cat((other, "),
        ("self(idx)", "work(idx)"),
        ("torch.nn.Module", "Pipeline"),
    ],
)
def test_what_does_not_grow(old: str, new: str) -> None:
    """What nobody calls, a forward pass, what is made anew, what runs no model, and what is none."""
    assert _told((_MODEL + LOOP + _CALLED).replace(old, new)) == []


_ROLLOUT = """\
obs = torch.zeros(128, 8).to(device)
for update in range(9):
    for step in range(0, 128):
        obs[step] = now
        action = model(now)
        now = world.step(action.cpu().numpy())
    loss = model(obs).sum()
    loss.backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
"""


def test_a_memory_that_an_agent_fills() -> None:
    """As cleanrl's PPO does: 128 graphs, and without an end of each pass each is larger than the one before."""
    (found,) = said(HEAD + _ROLLOUT, "growing_graphs")
    assert found.startswith("10: growing_graphs: obs[step] = ... on the device")
    assert "torch.stack" in found
    made = _ROLLOUT.replace("torch.zeros(128, 8).to(device)", "torch.zeros(128, 8, device=device)")
    assert said(HEAD + made.replace("obs[step]", "obs[step, 0]"), "growing_graphs")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".to(device)\nfor", "\nfor"),
        (".cpu().numpy()", ""),
        ("obs[step] =", "obs ="),
        ("obs[step] =", "obs[0] ="),
        ("obs[step] =", "names[step] ="),
        ("range(0, 128)", "indices"),
    ],
)
def test_a_memory_that_makes_one_graph(old: str, new: str) -> None:
    """On the host, of one step, at one place, of no tensor, or by a tensor."""
    assert said(HEAD + _ROLLOUT.replace(old, new), "growing_graphs") == []
