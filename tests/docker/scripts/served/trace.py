"""Traces a small BERT for NeuronCores, and leaves it beside a question and what the model itself answers."""

import json
import os

import torch
from transformers import BertConfig, BertForSequenceClassification

import torch_neuronx

torch.manual_seed(0)
shape = dict(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100
)
model = BertForSequenceClassification(BertConfig(**shape, torchscript=True)).eval()
words = torch.randint(0, 100, (2, 32))
mask = torch.ones_like(words)
mask[1, 20:] = 0
traced = torch_neuronx.trace(model, (words, mask))
torch.jit.save(traced, os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
with torch.no_grad():
    logits = model(words, mask)[0].tolist()
with open(os.path.join(os.environ["SM_MODEL_DIR"], "plain.json"), "w") as file:
    json.dump({"question": [words.tolist(), mask.tolist()], "logits": logits}, file)
