"""Computes with complex numbers, which the Neuron compiler refuses (NCC_EVRF004)."""

import torch
import torch_xla

device = torch_xla.device()
values = torch.ones(4, device=device)
doubled = values * 2
twisted = doubled * 1j
torch_xla.sync()
print("result", twisted.cpu().abs().sum().item())
