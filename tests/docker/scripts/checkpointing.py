"""Trains a small model on one core, with a checkpoint after each epoch; goes on from the last one.

Of --attempts, each but the last trains its share of the epochs and then waits for its interruption.
"""

import argparse
import os
import time

import torch
import torch_xla
from torch import nn

EPOCHS = 40
CHECKPOINT = "/opt/ml/checkpoints/last.pt"

parser = argparse.ArgumentParser()
parser.add_argument("--attempts", type=int)
attempts = parser.parse_args().attempts

device = torch_xla.device()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
first, attempt = 0, 1
if os.path.exists(CHECKPOINT):
    state = torch.load(CHECKPOINT)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first, attempt = state["epoch"] + 1, state["attempt"] + 1
print(f"goes on from epoch {first}", flush=True)

for epoch in range(first, EPOCHS):
    while epoch >= EPOCHS * attempt // attempts:
        time.sleep(0.25)
    batches = torch.Generator().manual_seed(epoch)
    for _ in range(4):
        inputs = torch.randn(32, 8, generator=batches).to(device)
        optimizer.zero_grad()
        loss = (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
    state = {"epoch": epoch, "attempt": attempt}
    state |= {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    state = torch.utils._pytree.tree_map(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, state)
    torch.save(state, f"{CHECKPOINT}.new")
    os.replace(f"{CHECKPOINT}.new", CHECKPOINT)  # a reader finds the old one or the new one, whole
    print(f"epoch {epoch} loss {loss.item():.6f}", flush=True)
    time.sleep(0.25)

torch.save(state["model"], os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
