"""Three steps of a model of many small layers, its gradients averaged by xm.optimizer_step or in DDP's buckets.

bucketed.py xm | views | copies: `views` has gradient_as_bucket_view=True.
"""

import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from saying import say

dist.init_process_group("xla")
torch.manual_seed(0)
layers = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(4)]
model = torch.nn.Sequential(*layers).to(torch_xla.device())
way = sys.argv[1]
if way != "xm":
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=way == "views")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(4, 32, generator=torch.Generator().manual_seed(dist.get_rank())).to(torch_xla.device())
for _ in range(3):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    if way == "xm":
        xm.optimizer_step(optimizer)
    else:
        optimizer.step()
    torch_xla.sync()
say(bias=layers[-1][0].bias.cpu().tolist())
