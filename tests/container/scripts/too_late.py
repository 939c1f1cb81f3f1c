"""Two epochs with a ragged last batch, and a value read and printed at each step: NaN in the second."""

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend

dist.init_process_group("xla")
device = torch_xla.device()
torch.manual_seed(0)
model = torch.nn.Linear(32, 16, bias=False).to(device)
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.randn(2 * (8 * 4 + 3), 32))
sampler = torch.utils.data.DistributedSampler(data)
batches = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)  # line: made
loader = pl.MpDeviceLoader(batches, device)
logged = []
for epoch in range(2):
    for (batch,) in loader:  # line: iterated
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        xm.optimizer_step(optimizer)
        print(f"loss {loss.item():.3f}")  # line: read
        xm.add_step_closure(lambda value: logged.extend(value.tolist()), args=(loss[None],))  # line: closure
    with torch.no_grad():
        model.weight.fill_(torch.nan)
    torch_xla.sync()
print("in closures:", len(logged))
