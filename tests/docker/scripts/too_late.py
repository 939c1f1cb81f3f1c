"""How trn1 would be disappointed: too_late.py --how loop (a ragged batch, a value read each step) or --how big."""

import argparse

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend

parser = argparse.ArgumentParser()
parser.add_argument("--how", required=True)
how = parser.parse_args().how
dist.init_process_group("xla")
device = torch_xla.device()
if how == "big":
    with torch.device(device):
        model = torch.nn.ModuleList(torch.nn.Linear(11180, 11180, bias=False) for _ in range(40))
    torch_xla.sync()  # line: big
model = torch.nn.Linear(32, 16).to(device)
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(8 * 4 + 3, 32))
batches = torch.utils.data.DataLoader(data, batch_size=8)  # line: made
for epoch in range(2):
    for (batch,) in pl.MpDeviceLoader(batches, device):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        xm.optimizer_step(optimizer)
        print(f"loss={loss.item():.3f}")  # line: read
