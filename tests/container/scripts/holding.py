"""Uses its core step by step until a file exists; no collectives, so that each process is for itself.

holding.py FILE [NAME=VALUE]: a variable that it sets itself, before it uses the device.
"""

import os
import sys
import time

import torch
import torch_xla

os.environ.update(word.split("=") for word in sys.argv[2:])
device = torch_xla.device()
model = torch.nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
while not os.path.exists(sys.argv[1]):
    optimizer.zero_grad()
    model(torch.randn(32, 64).to(device)).square().mean().backward()
    optimizer.step()
    torch_xla.sync()
    step += 1
    if step == 5:
        print("holding", os.environ.get("NEURON_RT_VISIBLE_CORES"), "in", os.getpid(), flush=True)
    time.sleep(0.05)
