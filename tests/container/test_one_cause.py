"""What two effects of one mistake look like: one finding, which names the other effect."""

from __future__ import annotations

import re

from test_diagnostics import findings


def test_graphs_for_the_sizes_of_what_the_cpu_gives_are_told_with_it(torchrun, tmp_path):
    """By the operation that XLA lacks: their shapes are no batch's, so padding would not help."""
    script = tmp_path / "picks.py"
    script.write_text(
        "import torch, torch_xla\n"
        "device = torch_xla.device()\n"
        "weight = torch.ones(4, 4, device=device)\n"
        "for number in range(2, 9):\n"
        "    keep = (torch.arange(9) < number).to(device)\n"
        "    total = (torch.ones(9, 4).to(device)[keep] @ weight).sum()\n"
        "    torch_xla.sync()\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    (told,) = {record["line"]: record for record in findings(tmp_path)}.values()
    assert (told["finding"], told["line"]) == ("cpu_fallback", "picks.py:6") and told["seconds"] > 0
    assert re.search(r" Its result changes in size: [56] more graphs \(", told["message"])


def test_batches_that_vary_are_not_told_with_what_has_their_sizes(torchrun, tmp_path):
    """What the CPU gives is as large as the batch, which is what the script must pad."""
    script = tmp_path / "varies.py"
    script.write_text(
        "import torch, torch_xla\n"
        "device = torch_xla.device()\n"
        "edges = torch.tensor([1.0, 2.0]).to(device)\n"
        "for number in range(2, 12):\n"
        "    batch = torch.ones(number, 4).to(device)\n"
        "    total = (torch.bucketize(batch, edges) * batch).sum()\n"
        "    torch_xla.sync()\n"
    )
    torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    told = {record["finding"]: record["message"] for record in findings(tmp_path)}
    assert set(told) == {"cpu_fallback", "recompiles"}
    assert "changes in size" not in told["cpu_fallback"]


def test_graphs_that_grow_as_no_step_ends_are_told_with_that(torchrun, tmp_path):
    """One finding, with the growth, from the first of it on: its advice is another than for a loop without training."""
    script = tmp_path / "unended.py"
    script.write_text(
        "import torch, torch_xla\n"
        "model = torch.nn.Linear(4, 2).to(torch_xla.device())\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        "for _ in range(12):\n"
        "    loss = model(torch.ones(2, 4).to(torch_xla.device())).sum()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
        "    loss.item()\n"
    )
    launch = torchrun(str(script), workers=1, WINDTUNNEL_COUNTERS_DIR=str(tmp_path))
    *_, told = findings(tmp_path)
    assert {record["finding"] for record in findings(tmp_path)} == {"step_without_end"}
    assert "made 12 steps" in told["message"] and told["seconds"] > 0
    assert re.search(r"compiles all of it until then: 1[0-2] graphs so far", told["message"])
    assert len(re.findall(r"unended\.py:7: the optimizer made", launch.output)) == 2
