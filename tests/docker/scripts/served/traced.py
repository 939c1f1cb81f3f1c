"""Serves what trace.py has left."""

import os

import torch

import torch_neuronx  # noqa: F401 - what was traced needs it


def model_fn(model_dir):
    return torch.jit.load(os.path.join(model_dir, "model.pt"))


def predict_fn(data, model):
    words, mask = torch.as_tensor(data, dtype=torch.int64)
    return model(words, mask)[0].tolist()
