"""Trains a little, eagerly if the environment asks for it, and says what was compiled; fails at a marked line."""

import os
import sys

if "set" in sys.argv:
    os.environ["NEURON_USE_EAGER_DEBUG_MODE"] = "1"

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
from saying import say

device = torch_xla.device()
torch.manual_seed(0)
model = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.arange(8.0).view(2, 4).to(device) / 8
model(inputs)
before = [met.metric_data(name) for name in ("EagerOpExecuteTime", "ExecuteTime")]
for _ in range(3):
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
say(loss=loss.item(), eager=before[0] is not None, lazy=before[1] is not None)
