"""Traces a small BERT for a NeuronCore and saves it in the folder SM_MODEL_DIR; says what the model itself answers."""

import os

import torch
from saying import say
from transformers import BertConfig, BertForSequenceClassification

import torch_neuronx

torch.manual_seed(0)
shape = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100)
model = BertForSequenceClassification(BertConfig(**shape, torchscript=True)).eval()
words = torch.randint(0, 100, (2, 16))
mask = torch.ones_like(words)
traced = torch_neuronx.trace(model, (words, mask))
torch.jit.save(traced, os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
with torch.no_grad():
    say(words=words.tolist(), logits=model(words, mask)[0].tolist())
