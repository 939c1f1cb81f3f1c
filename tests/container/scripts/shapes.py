"""Steps that never stop compiling: another length each time; an operation that XLA lacks; `if tensor:`; slow input."""

import time

import torch
import torch_xla

device = torch_xla.device()
weight = torch.randn(16, 16, device=device)
for length in range(3, 10):
    rows = torch.randn(length, 16).to(device)
    result = rows @ weight
    torch_xla.sync()  # line: dynamic
    if result.sum() > 0:  # line: branch
        pass
torch.nonzero(rows > 0)  # line: fallback
torch_xla.sync()


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        time.sleep(0.1)
        return torch.ones(16)


for batch in torch.utils.data.DataLoader(Slow()):  # line: slow
    total = batch.to(device).sum()
    torch_xla.sync()
