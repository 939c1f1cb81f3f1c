"""Nearest-neighbour upsampling is differentiated on the device, as torch_xla does it for a NeuronCore."""

from __future__ import annotations

from conftest import SCRIPTS

SCRIPT = f"""
import sys
import torch
import torch_xla
import torch_xla.debug.metrics as metrics
sys.path.append({str(SCRIPTS)!r})
from saying import say

def gradient(device, **how):
    inputs = torch.arange(48.0).reshape(1, 3, 4, 4).to(device).requires_grad_()
    outputs = torch.nn.functional.interpolate(inputs, mode="nearest", **how)
    (outputs * torch.arange(float(outputs.numel())).reshape(outputs.shape).to(device)).sum().backward()
    return inputs.grad.cpu()

ways = [dict(scale_factor=2.0), dict(size=(9, 3)), dict(scale_factor=(1.7, 3.0)), dict(scale_factor=(1.2, 2.2))]
same = [torch.equal(gradient("xla", **how), gradient("cpu", **how)) for how in ways]
say(same=same, fallbacks=[name for name in metrics.counter_names() if name.startswith("aten::upsample")])
"""


def test_its_gradient_is_pytorchs_and_stays_on_the_device(torchrun, tmp_path):
    """By a whole factor, by a size, by a fraction, by one that rounds to a whole factor.

    A fall-back would cut the step, and be a finding that trn1 lacks.
    """
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    launch = torchrun(str(script), workers=1)
    (said,) = launch.said
    assert said["same"] == [True] * 4
    assert said["fallbacks"] == []
