"""Trains on the simulated device until one rank is killed, by a helper process, at a random moment."""

import os
import random
import subprocess
import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
chance = random.Random(int(os.environ["SEED"]))
victim, delay = chance.randrange(WORLD), chance.uniform(0.0, 1.0)
device = torch_xla.device()
model = torch.nn.Linear(64, 64).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
KILL = """
import os, signal, sys, time
time.sleep(float(sys.argv[3]))
print("KILLED", sys.argv[1], sys.argv[2], time.monotonic(), flush=True)
os.kill(int(sys.argv[2]), signal.SIGKILL)
"""
for step in range(100_000):
    optimizer.zero_grad()
    model(torch.ones(8, 64, device=device)).sum().backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
    if step == 2 and RANK == victim:
        subprocess.Popen([sys.executable, "-S", "-c", KILL, str(RANK), str(os.getpid()), str(delay)])
