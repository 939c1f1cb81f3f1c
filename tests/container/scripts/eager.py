"""Trains a little, eagerly if the environment asks for it, and says what was compiled.

With "mode" in torch_xla's own eager mode, with "compiled" too: then each step is compiled, on a loader's batches.
"""

import os
import sys

if "set" in sys.argv:
    os.environ["NEURON_USE_EAGER_DEBUG_MODE"] = "1"

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.parallel_loader as pl
from saying import say

if "mode" in sys.argv or "compiled" in sys.argv:
    torch_xla.experimental.eager_mode(True)
device = torch_xla.device()
torch.manual_seed(0)
model = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.arange(8.0).view(2, 4).to(device) / 8
model(inputs)
before = [met.metric_data(name) for name in ("EagerOpExecuteTime", "ExecuteTime")]


def step(inputs):
    """One, as in any other script."""
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)  # line: step
    return loss


if "compiled" in sys.argv:
    step = torch_xla.compile(step)
for (inputs,) in pl.MpDeviceLoader([(inputs.cpu(),)] * 12, device) if len(sys.argv) > 1 else [(inputs,)] * 12:
    loss = step(inputs)
    torch_xla.sync()
say(loss=loss.item(), eager=before[0] is not None, lazy=before[1] is not None)
