"""Trains one small BERT on the simulated cores, or as gloo DDP, from the same seed and data; saves the result.

torchrun train_equivalence.py xla|gloo OUTPUT [--no-collectives]
"""

import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertForSequenceClassification

KIND, OUTPUT = sys.argv[1:3]
STEPS, BATCH, LENGTH, VOCABULARY = 12, 4, 16, 100


def model_and_data(rank, world):
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    model = BertForSequenceClassification(config)
    tokens = torch.randint(0, VOCABULARY, (STEPS * BATCH * world, LENGTH))
    data = TensorDataset(tokens, (tokens.sum(1) % 2))
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=3)
    return model, DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)


def train_gloo():
    dist.init_process_group("gloo")
    model, loader = model_and_data(dist.get_rank(), dist.get_world_size())
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = ddp(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save({"losses": losses, "parameters": model.state_dict()}, f"{OUTPUT}.{dist.get_rank()}")
    dist.destroy_process_group()


def train_xla():
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.distributed.parallel_loader as pl
    import torch_xla.distributed.xla_backend
    import torch_xla.runtime as xr

    if "--no-collectives" in sys.argv:
        torch_xla._XLAC._xla_all_reduce_inplace = lambda *_: None
    dist.init_process_group("xla")
    device = torch_xla.device()
    model, loader = model_and_data(xr.global_ordinal(), xr.world_size())
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for tokens, labels in pl.MpDeviceLoader(loader, device):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        xm.optimizer_step(optimizer)
        xm.add_step_closure(lambda value: losses.append(value.detach().item()), args=(loss,))
    parameters = {name: value.cpu() for name, value in model.state_dict().items()}
    torch.save({"losses": losses, "parameters": parameters}, f"{OUTPUT}.{xr.global_ordinal()}")


train_gloo() if KIND == "gloo" else train_xla()
