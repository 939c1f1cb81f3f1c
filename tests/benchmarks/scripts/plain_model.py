"""A model of `gpu_training` as a plain script for trn1 trains it: a few steps on one core, for their counts."""

import argparse

import torch
import torch.distributed as dist
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
from gpu_training import SHAPES, built, samples
from torch.utils.data import DataLoader

STEPS = 3

parser = argparse.ArgumentParser()
parser.add_argument("--model")
parser.add_argument("--batch", type=int)
arguments = parser.parse_args()
if not dist.is_initialized():  # importing transformers' Trainer does it
    dist.init_process_group("xla")
shape = SHAPES[arguments.model]
model = built(shape, "sdpa", shape.length).to("xla").train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
every = samples(shape, STEPS * arguments.batch, shape.length)
rows = [{name: part[row] for name, part in every.items()} for row in range(STEPS * arguments.batch)]
for batch in pl.MpDeviceLoader(DataLoader(rows, batch_size=arguments.batch), "xla"):
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    xm.optimizer_step(optimizer)
