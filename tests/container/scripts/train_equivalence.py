"""Trains one small BERT from the same seed and data in three ways; saves the results.

torchrun train_equivalence.py FOLDER    on simulated cores, then as if these had no collectives: `xla`, `alone`
python train_equivalence.py FOLDER      two processes of plain PyTorch, gloo and DDP: `gloo`
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import BertConfig, BertForSequenceClassification

FOLDER, WORLD = sys.argv[1], 2
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


def save(name, rank, losses, parameters):
    torch.save({"losses": losses, "parameters": parameters}, f"{FOLDER}/{name}.{rank}")


def train_gloo(rank):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/store", rank=rank, world_size=WORLD)
    model, loader = model_and_data(rank, WORLD)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for tokens, labels in loader:
        optimizer.zero_grad()
        loss = ddp(input_ids=tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    save("gloo", rank, losses, model.state_dict())
    dist.destroy_process_group()


def train_xla(name):
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.distributed.parallel_loader as pl
    import torch_xla.runtime as xr

    device, rank = torch_xla.device(), xr.global_ordinal()
    model, loader = model_and_data(rank, xr.world_size())
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for tokens, labels in pl.MpDeviceLoader(loader, device):
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        xm.optimizer_step(optimizer)
        xm.add_step_closure(lambda value: losses.append(value.detach().item()), args=(loss,))
    save(name, rank, losses, {name: value.cpu() for name, value in model.state_dict().items()})


if "RANK" not in os.environ:
    assert "torch_xla" not in sys.modules
    torch.multiprocessing.start_processes(train_gloo, nprocs=WORLD, start_method="fork")
else:
    import torch_xla
    import torch_xla.distributed.xla_backend

    dist.init_process_group("xla")
    train_xla("xla")
    torch_xla._XLAC._xla_all_reduce_inplace = lambda *_: None
    train_xla("alone")
