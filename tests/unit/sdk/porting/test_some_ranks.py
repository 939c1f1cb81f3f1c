"""What all processes must come to, and some alone do."""

from __future__ import annotations

import pytest

from tests.unit.sdk.porting.test_program import HEAD, LOOP, said

_WAITS = 'xm.rendezvous("saved")'


def _told(text: str) -> list[str]:
    head = HEAD + "import torch.distributed as dist\nrank = dist.get_rank()\n"
    return said(head + LOOP + text, "they wait for")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"if xm.is_master_ordinal():\n    {_WAITS}\n", 16),
        (f"if not xm.is_master_ordinal(local=False):\n    {_WAITS}\n", 16),
        (f"if last and 0 == xr.global_ordinal():\n    {_WAITS}\n", 16),
        (f"main = rank == 0\nif main:\n    {_WAITS}\n", 17),
        ("rank == 0 and dist.all_reduce(total)\n", 15),
        ("def mean():\n    if rank != 0:\n        return None\n    dist.all_reduce(total)\nmean()\n", 18),
        (
            "def mean():\n    if rank == 0:\n        return None\n    dist.all_gather(every, total)\nmean()\n",
            18,
        ),
        ("if rank > 0:\n    sys.exit()\nxm.mesh_reduce('loss', loss, sum)\n", 17),
        ("def mean():\n    xm.all_reduce('sum', total)\nif rank == 0:\n    mean()\n", 16),
        ("for batch in every:\n    if rank != 0: break\n    xm.optimizer_step(optimizer)\n", 17),
    ],
)
def test_a_collective_that_some_come_to(text: str, line: int) -> None:
    """Under a test of the rank, or behind the end of the others: it waits for ever."""
    (found,) = _told(text)
    assert found.startswith(f"{line}: ") and "only some processes call" in found


@pytest.mark.parametrize(
    "text",
    [
        f"{_WAITS}\n",
        f"if args.local_rank != -1:\n    {_WAITS}\n",
        f"if rank >= 0:\n    {_WAITS}\n",
        f"if args.master_addr:\n    {_WAITS}\n",
        f"if rank != 0:\n    {_WAITS}\nload()\nif rank == 0:\n    {_WAITS}\n",
        f"if rank == 0:\n    load()\n    {_WAITS}\nelse:\n    {_WAITS}\n",
        "if rank == 0:\n    dist.all_reduce(total, dist.ReduceOp.SUM, group)\n",
        "if rank == 0:\n    dist.send(total, 1)\n",
        "if rank == 0 or one:\n    dist.all_reduce(total)\n",
        "def mean():\n    if rank == 0:\n        return total\n    return dist.all_reduce(total)\n"
        "mean() if rank else other()\ndist.all_reduce(total) if rank == 0 else None\n",
        "def mean():\n    dist.all_reduce(total)\nif rank == 0:\n    mean()\nmean()\n",
    ],
)
def test_a_collective_that_all_may_come_to(text: str) -> None:
    """At this place or another, or in a group of their own."""
    assert _told(text) == []


def test_one_process_waits_for_nobody() -> None:
    """Without others there is nothing to wait for."""
    assert not said(f"{HEAD}if rank == 0:\n    {_WAITS}\n", "they wait for", several=False)


def test_a_barrier_that_some_come_to() -> None:
    """It does nothing in torch_xla's group; xm.rendezvous in its place would wait for ever."""
    text = "import torch.distributed as dist\nrank = dist.get_rank()\nx.cuda()\nif rank == 0:\n    dist.barrier()\n"
    assert not said(text, "barrier")
    assert said(text.replace("if rank == 0:", "if x:"), "barrier() does nothing")


_TRAINER = """\
import torch_xla.core.xla_model as xm
from transformers import Trainer
trainer = Trainer(model=model, args=args)
trainer.train()
if xm.is_master_ordinal():
    trainer.evaluate(test)
"""


@pytest.mark.parametrize(
    ("old", "new", "is_told"),
    [
        ("trainer.evaluate(test)", "trainer.evaluate(test)", True),
        ("trainer.evaluate(test)", "trainer.save_model(path)", True),
        ("import torch_xla.core.xla_model as xm\n", "\n", True),
        ("xm.is_master_ordinal()", "trainer.is_world_process_zero()", True),
        ("if xm.is_master_ordinal():", "if args.do_eval:", False),
        ("trainer.evaluate(test)", "trainer.log_metrics('eval', metrics)", False),
        ("trainer.evaluate(test)", "trainer.evaluate(test)\nelse:\n    trainer.evaluate(test)", False),
        ("from transformers", "from own", False),
    ],
)
def test_what_a_trainer_does_with_all_processes(old: str, new: str, *, is_told: bool) -> None:
    """transformers' gathers what it evaluates, and on XLA all meet before one writes the model."""
    found = said(_TRAINER.replace(old, new), "only some processes call")
    assert [one.startswith("6: only some processes call trainer.") for one in found] == [True] * is_told
