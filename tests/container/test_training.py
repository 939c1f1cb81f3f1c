"""Training on simulated cores is the training that PyTorch does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import SCRIPTS

TOLERANCE = 1e-4


def results(path: Path) -> list[dict]:
    return [torch.load(f"{path}.{rank}", weights_only=True) for rank in (0, 1)]


def largest_difference(left: dict, right: dict) -> float:
    """The largest difference of any parameter tensor, relative to that tensor's largest value.

    The bias of attention's keys has no influence on the output: its gradient is rounding noise of
    1e-13, which is compared as an absolute value.
    """
    return max(
        ((left[name] - right[name]).abs().max() / right[name].abs().max().clamp_min(1e-6)).item()
        for name in right
    )


def test_two_cores_train_as_plain_gloo_ddp_does(torchrun, tmp_path):
    """Equal in every bit across ranks; loss and final parameters as in plain DDP within 1e-4 relative.

    And the comparison can fail: without collectives, copies drift apart, from each other and from DDP.
    """
    torchrun("train_equivalence.py", str(tmp_path))
    plain = [sys.executable, str(SCRIPTS / "train_equivalence.py"), str(tmp_path)]
    # Or transformers would import torch_xla, and with it the simulator.
    subprocess.run(plain, env={**os.environ, "USE_TORCH_XLA": "0"}, check=True, timeout=300)
    ours, theirs, alone = (results(tmp_path / name) for name in ("xla", "gloo", "alone"))
    for name, value in ours[0]["parameters"].items():
        assert torch.equal(value, ours[1]["parameters"][name]), name
    difference = largest_difference(ours[0]["parameters"], theirs[0]["parameters"])
    print(f"largest relative difference of a final parameter: {difference:.2e}")
    assert difference < TOLERANCE
    for rank in (0, 1):
        assert len(ours[rank]["losses"]) == 12
        torch.testing.assert_close(
            torch.tensor(ours[rank]["losses"]), torch.tensor(theirs[rank]["losses"]), rtol=TOLERANCE, atol=0.0
        )

    assert largest_difference(alone[0]["parameters"], alone[1]["parameters"]) > 10 * TOLERANCE
    assert largest_difference(alone[0]["parameters"], theirs[0]["parameters"]) > 10 * TOLERANCE


@pytest.mark.parametrize("variable", ["XLA_USE_BF16", "XLA_DOWNCAST_BF16"])
def test_what_the_environment_makes_bf16_stays_so_in_a_collective(torchrun, variable):
    """AWS's older scripts train so, and clip what was summed over the cores."""
    said = torchrun("clipped.py", variable).output
    losses = [float(value) for value in re.findall(r"loss=([\d.]+)", said)]
    assert len(losses) == 8 and losses[-1] < losses[0]
