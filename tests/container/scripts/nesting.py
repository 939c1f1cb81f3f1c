"""Starts torchrun before it has used the device itself, by the words it is given, and after."""

import os
import subprocess
import sys

import torch
import torch_xla
from torch.utils.data import DataLoader

LAUNCH = [sys.executable, "-m", "neuron_sim.launcher.torchrun"]
CHILD = [
    "--nproc_per_node",
    "2",
    os.path.join(os.path.dirname(__file__), "holding.py"),
    __file__,
]  # the file exists: it ends at once


def launch(command):
    done = subprocess.run([*command, *CHILD], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


if __name__ == "__main__":
    print("IN", os.getpid())
    print("BEFORE", launch(sys.argv[1:])[0], flush=True)
    device = torch_xla.device()
    loader = DataLoader(torch.arange(8.0), batch_size=2, num_workers=2)
    print("LOADED", sum(batch.to(device).sum().item() for batch in loader), flush=True)
    code, output = launch(LAUNCH)
    print("AFTER", code, flush=True)
    print(output)
