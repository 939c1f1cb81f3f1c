"""Makes its batches itself, 8 samples of 4 numbers, two of them for each step; a mask goes to the device, too.

After each step it evaluates with a loader."""

import torch
import torch_xla
import torch_xla.distributed.xla_backend
from torch.utils.data import DataLoader, TensorDataset
from torch_xla.distributed.parallel_loader import MpDeviceLoader

torch.distributed.init_process_group("xla")
device = torch_xla.device()
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1)).to(
    device
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
evaluated = MpDeviceLoader(DataLoader(TensorDataset(torch.randn(6, 4)), 3), device)
for _ in range(5):
    optimizer.zero_grad()
    for _ in range(2):
        given, wanted = torch.randn(8, 4).to(device), torch.randn(8, 1).to(device)
        scale = torch.ones(1).to(device)
        torch.nn.functional.mse_loss(model(given) * scale, wanted).backward()
    optimizer.step()
    torch_xla.sync()
    with torch.no_grad():
        for (given,) in evaluated:
            model(given).sum()
