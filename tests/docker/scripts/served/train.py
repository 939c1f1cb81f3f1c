"""Leaves the weights of a layer that doubles."""

import os

import torch

layer = torch.nn.Linear(2, 2, bias=False)
layer.weight.data = 2 * torch.eye(2)
torch.save(layer.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pth"))
