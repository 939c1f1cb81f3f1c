"""A model of `gpu_training` as a plain script for trn1 trains it: a few steps on one core, for their counts."""

import argparse

import torch
import torch.distributed as dist
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
from other_models import LATER, OTHERS
from published_models import PUBLISHED
from torch.utils.data import DataLoader

STEPS = 3

parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--batch", type=int)
arguments = parser.parse_args()
if not dist.is_initialized():  # importing transformers' Trainer does it
    dist.init_process_group("xla")
other = {**OTHERS, **LATER, **PUBLISHED}.get(arguments.model)
if other is None:  # it names an attention, as no script of these does
    from gpu_training import built, samples

    model, every = built(arguments.model), samples(arguments.model, STEPS * arguments.batch)
else:
    model, every = other.build(), other.sample(STEPS * arguments.batch)
model = model.to("xla").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
rows = [{name: part[row] for name, part in every.items()} for row in range(STEPS * arguments.batch)]
for batch in pl.MpDeviceLoader(DataLoader(rows, batch_size=arguments.batch), "xla"):
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    xm.optimizer_step(optimizer)
