"""Trains as NxD Core does: two cores share each layer, and two copies of the model have batches of their own.

``same``: they have the same ones. ``pieces``: in microbatches, as its pipelines have them. NxD Core itself is played:
what it says of its groups.
"""

import itertools
import sys
import types

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.runtime as xr
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

PIECES = 4
state = types.ModuleType("neuronx_distributed.parallel_layers.parallel_state")
state.model_parallel_is_initialized = lambda: True
state.get_tensor_model_parallel_size = lambda: 2
state.get_pipeline_model_parallel_size = lambda: 1
state.get_data_parallel_group = lambda as_list: [[0, 2], [1, 3]]
sys.modules[state.__name__] = state

device = torch_xla.device()
torch.manual_seed(0)
whole = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Linear(6, 3))
model = whole[0].to(device)
model.weight.tensor_model_parallel = True


class Config:
    """As transformers keeps it."""

    def to_dict(self):
        return {"model_type": "llama", "hidden_size": 8, "rope_scaling": {"factor": 2.0}, "head_dim": None}


model.config = Config()
model.peft_config = {"default": types.SimpleNamespace(r=4)}
torch.nn.Linear(1, 1).config = "of another kind"


class Late(torch.nn.Module):
    """A script's own, that cannot tell yet."""

    @property
    def config(self):
        raise RuntimeError("load the weights first")

    peft_config = config


late = Late()
whole[1].requires_grad_(False)  # the other stage of a pipeline
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(160, 8))
rank = 0 if sys.argv[1] == "same" else xr.global_ordinal() // 2
sampler = DistributedSampler(dataset, num_replicas=2, rank=rank, shuffle=False)
loader = DataLoader(dataset, batch_size=8, sampler=sampler)  # line: made
for (batch,) in loader if sys.argv[1] == "pieces" else pl.MpDeviceLoader(loader, device):
    if sys.argv[1] == "pieces":
        parts = [[part] for part in batch.split(len(batch) // PIECES)]
        pieces = iter(pl.MpDeviceLoader(parts, device, batches_per_execution=PIECES + 1))
    else:
        pieces = iter([(batch,)])
    under_way = []
    for piece in itertools.chain(pieces, [None]):  # one forward, then forward and backward in turn
        if piece is not None:
            under_way.append(model(piece[0]).square().mean())
            xm.mark_step()
        if len(under_way) == 2 or piece is None:
            for loss in under_way if piece is None else under_way[:1]:
                loss.backward()
                xm.mark_step()
            del under_way[:1]
    for gradient in [parameter.grad for parameter in model.parameters()]:
        xm.all_reduce("sum", [gradient], groups=[[0, 2], [1, 3]])
    optimizer.step()
    optimizer.zero_grad()
    xm.mark_step()
