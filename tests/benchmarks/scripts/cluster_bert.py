"""Trains a small BERT data-parallel with gradient accumulation, and writes when each of its updates had ended,
and the processor time by then.

torchrun cluster_bert.py --output FOLDER --grad_accum N [--updates N]
"""

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertForSequenceClassification

BATCH, LENGTH, VOCABULARY = 8, 32, 1024

parser = argparse.ArgumentParser()
parser.add_argument("--output", type=Path, required=True)
parser.add_argument("--grad_accum", type=int, required=True)
parser.add_argument("--updates", type=int, default=20)
asked = parser.parse_args()

dist.init_process_group("xla")
device, rank, world = torch_xla.device(), xr.global_ordinal(), xr.world_size()
torch.manual_seed(7)
config = BertConfig(
    vocab_size=VOCABULARY,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=256,
    max_position_embeddings=LENGTH,
)
model = BertForSequenceClassification(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
tokens = torch.randint(0, VOCABULARY, (asked.updates * asked.grad_accum * BATCH * world, LENGTH))
data = TensorDataset(tokens, tokens.sum(1) % 2)
sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=3)
loader = DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)
torch.manual_seed(11 + rank)

mask = torch.ones(BATCH, LENGTH, dtype=torch.long, device=device)
ends, processor, losses = [], [], []
for number, (ids, labels) in enumerate(pl.MpDeviceLoader(loader, device), 1):
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss / asked.grad_accum
    loss.backward()
    if number % asked.grad_accum == 0:
        torch_xla.sync()
        xm.reduce_gradients(optimizer)
        optimizer.step()
        optimizer.zero_grad()
        torch_xla.sync(wait=True)
        ends.append(time.time())
        processor.append(time.process_time())
        losses.append(loss.item() * asked.grad_accum)
parameters = [value.double().sum().item() for value in model.cpu().state_dict().values()]
asked.output.mkdir(parents=True, exist_ok=True)
record = {
    "samples_of_an_update": BATCH * asked.grad_accum * world,
    "parameter_count": sum(value.numel() for value in model.parameters()),
    "ends": ends,
    "processor_seconds": processor,
    "losses": losses,
    "parameters": parameters,
}
(asked.output / f"rank-{rank}.json").write_text(json.dumps(record))
