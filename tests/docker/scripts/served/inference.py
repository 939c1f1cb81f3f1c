"""Serves what train.py has left."""

import os

import torch


def model_fn(model_dir):
    layer = torch.nn.Linear(2, 2, bias=False)
    layer.load_state_dict(torch.load(os.path.join(model_dir, "model.pth"), map_location="cpu"))
    return layer.eval()


def predict_fn(data, model):
    if len(data) > 3:
        raise ValueError("at most three rows")
    with torch.no_grad():
        return model(torch.as_tensor(data, dtype=torch.float32)).tolist()
