"""Operations that XLA lacks, on values that are on the device already: nothing is pending where they are called."""

import torch
import torch_xla

device = torch_xla.device()
values = torch.arange(12.0).reshape(3, 4).to(device)
mask = (torch.arange(12).reshape(3, 4) > 4).to(device)
torch_xla.sync()
picked = values[mask]  # line: mask
torch_xla.sync()
kinds = torch.unique(mask)  # line: unique
torch_xla.sync()
scaled = torch.addmm(values, values * 1, torch.ones(4, 4).to(device), beta=0.5)  # line: addmm
torch_xla.sync()
zeros, rows = values.new_zeros(3, 4), mask.long()
most = zeros.scatter_reduce(0, rows, values * 1, "amax", include_self=False)  # line: most
torch_xla.sync()
weight = torch.nn.Parameter(torch.randn(4, 4, device=device))
for optimizer in (torch.optim.Rprop([weight]), torch.optim.Rprop([weight], capturable=True)):
    weight.grad = torch.ones(4, 4).to(device)
    optimizer.step()  # line: step
    torch_xla.sync()
assert picked.shape == (7,) and kinds.tolist() == [False, True]
assert scaled.cpu().equal(torch.arange(12.0).reshape(3, 4) @ torch.ones(4, 4) + values.cpu() / 2)
assert most.cpu().tolist()[0] == [4.0, 1.0, 2.0, 3.0]
