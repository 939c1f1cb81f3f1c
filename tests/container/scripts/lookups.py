"""Looks up rows of an embedding: what lies inside, and what a token or a batch too many would ask for."""

import torch
import torch_xla
import torch_xla.distributed.parallel_loader as pl
from saying import say
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.data import DataLoader

DEVICE = torch_xla.device()
table = nn.Embedding(10, 4).to(DEVICE)
inside, beyond = torch.arange(10).reshape(2, 5), torch.tensor([[3, 10], [0, 1]])


def batches():
    for batch in pl.MpDeviceLoader(DataLoader(beyond, batch_size=1), DEVICE):
        table(batch)


CASES = {
    "inside": lambda: table(inside.to(DEVICE)),
    "none": lambda: table(torch.empty(0, dtype=torch.long, device=DEVICE)),
    "computed there": lambda: table((beyond.to(DEVICE)).clamp(max=9)),
    "a part": lambda: table(beyond.to(DEVICE)[1]),
    "a part by strides": lambda: table(beyond.to(DEVICE).as_strided((2, 2), (2, 0))),
    "compiled": lambda: torch.compile(table, backend="openxla")(inside.to(DEVICE)),
    "traced": lambda: make_fx(table)(inside.to(DEVICE)),
    "beyond": lambda: table(beyond.to(DEVICE)),
    "below": lambda: table(inside.to(DEVICE).sub(1).cpu().to(DEVICE)),
    "all but the first": lambda: table(beyond.to(DEVICE)[:, 1:]),
    "another shape": lambda: table(beyond.to(DEVICE).view(-1)),
    "of 32 bits": lambda: table(beyond.int().to(DEVICE)),
    "from a loader": batches,
}
for name, case in CASES.items():
    try:
        case()
    except RuntimeError as error:
        say(case=name, error=str(error))
total = table(inside.to(DEVICE)).sum()
total.backward()
torch_xla.sync()
say(case="gradient", counts=table.weight.grad.sum(1).cpu().tolist())
