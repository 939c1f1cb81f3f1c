"""Trains BERT-Mini's shape on simulated cores, or as plain PyTorch DDP over gloo, from the same seed and data.

torchrun bert.py xla|gloo --output FOLDER [--steps N] [--dropout P]
"""

import argparse
import json
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertForSequenceClassification

BATCH, LENGTH, VOCABULARY = 8, 128, 30522


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("xla", "gloo"))
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--dropout", type=float, default=0.0)
    return parser.parse_args()


def model_and_data(asked, rank, world):
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=512,
        hidden_dropout_prob=asked.dropout,
        attention_probs_dropout_prob=asked.dropout,
    )
    model = BertForSequenceClassification(config)
    tokens = torch.randint(0, VOCABULARY, (asked.steps * BATCH * world, LENGTH))
    data = TensorDataset(tokens, tokens.sum(1) % 2)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=3)
    torch.manual_seed(11 + rank)
    return model, DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)


class Report:
    """When each step had ended, the processor time by then, and its loss: read at the end only, as a script that logs seldom does."""

    def __init__(self):
        self._ends = []
        self._processor = []
        self._losses = []

    def step(self, loss, wait):
        self._losses.append(loss.detach())
        if len(self._ends) < 2:
            # So that "the second step has ended" means its results are there.
            wait()
        self._ends.append(time.time())
        self._processor.append(time.process_time())

    def write(self, folder, rank, wait, model):
        wait()
        self._ends[-1] = time.time()
        report = {
            "ends": self._ends,
            "processor_seconds": self._processor,
            "losses": [loss.item() for loss in self._losses],
            "parameters": {
                name: [value.double().sum().item(), value.double().norm().item()]
                for name, value in ((name, value.cpu()) for name, value in model.state_dict().items())
            },
        }
        (folder / f"rank-{rank}.json").write_text(json.dumps(report))


def train_gloo(asked):
    dist.init_process_group("gloo")
    model, loader = model_and_data(asked, dist.get_rank(), dist.get_world_size())
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-4)
    report = Report()
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = ddp(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        report.step(loss, lambda: None)
    report.write(asked.output, dist.get_rank(), lambda: None, model)
    dist.destroy_process_group()


def train_xla(asked):
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.distributed.parallel_loader as pl
    import torch_xla.distributed.xla_backend
    import torch_xla.runtime as xr

    dist.init_process_group("xla")
    device = torch_xla.device()
    model, loader = model_and_data(asked, xr.global_ordinal(), xr.world_size())
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    report = Report()
    for tokens, labels in pl.MpDeviceLoader(loader, device):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        xm.optimizer_step(optimizer)
        report.step(loss, lambda: torch_xla.sync(wait=True))
    report.write(asked.output, xr.global_ordinal(), lambda: torch_xla.sync(wait=True), model)


asked = arguments()
(train_gloo if asked.kind == "gloo" else train_xla)(asked)
