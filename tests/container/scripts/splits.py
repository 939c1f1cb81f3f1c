"""Splits what a layer computes by a list of sizes, and in the ways that are right on trn1, too.

splits.py [XLA_DISABLE_FUNCTIONALIZATION]
"""

import os
import sys

if sys.argv[1]:
    os.environ["XLA_DISABLE_FUNCTIONALIZATION"] = sys.argv[1]

import torch
import torch_xla
import torch_xla.core.xla_model as xm
from saying import say

SPLITS = [
    lambda x: x.split([2, 4], 1),  # line: two dimensions
    lambda x: x.view(2, 2, 6).split([3, 3], -1),  # line: three dimensions
    lambda x: x.split([1, 3]),
    lambda x: x[:1].split([2, 4], 1),
    lambda x: x.split(2, 1),
    lambda x: x.chunk(2, 1),
    lambda x: torch.tensor_split(x, [2], 1),
    lambda x: x.split([0, 6], 1),
]

layer = torch.nn.Linear(6, 6).to(torch_xla.device())
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    y = layer(torch.ones(4, 6, device=torch_xla.device()))
    sum(piece.sum() for split in SPLITS for piece in split(y)).backward()
    xm.optimizer_step(optimizer)
    torch_xla.sync()
x = torch.arange(24.0).reshape(4, 6)
y = x.to(torch_xla.device())
say(right=[torch.equal(one.cpu(), other) for s in SPLITS for one, other in zip(s(y), s(x), strict=True)])
