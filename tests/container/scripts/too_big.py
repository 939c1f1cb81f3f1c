"""Needs more memory than a NeuronCore has: too_big.py lazy | moved | activations; or fits: too_big.py small."""

import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm

how = sys.argv[1]
device = torch_xla.device()
if how == "lazy":
    with torch.device(device):
        model = torch.nn.ModuleList(torch.nn.Linear(11180, 11180, bias=False) for _ in range(40))
    torch_xla.sync()  # line: lazy
if how == "moved":
    with torch.device("meta"):
        model = torch.nn.ModuleList(torch.nn.Linear(11180, 11180, bias=False) for _ in range(40))
    model.to_empty(device="cpu").to(device)  # line: moved
if how == "activations":
    outer = torch.ones(70000, 4, device=device) @ torch.ones(4, 70000, device=device)
    total = (outer @ outer[:, :4]).sum()
    del outer
    torch_xla.sync()  # line: activations
if how == "small":
    model = torch.nn.Linear(64, 64).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(8, 64).to(device)).sum().backward()
    optimizer.step()
    torch_xla.sync(wait=True)
    print("memory", xm.get_memory_info(device))
print("went on")
