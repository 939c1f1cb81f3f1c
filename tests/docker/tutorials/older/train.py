"""Learn which of two words a review holds, with the names of torch_xla 1.11."""

import argparse
import csv
import os

import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.distributed.init_process_group("xla")
parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float)
arguments = parser.parse_args()
torch.manual_seed(0)


def read(channel, name):
    with open(os.path.join(os.environ[f"SM_CHANNEL_{channel}"], name)) as file:
        rows = list(csv.DictReader(file))
    texts = torch.tensor([[float("good" in row["content"]), 1.0] for row in rows])
    return TensorDataset(texts, torch.tensor([int(row["label"]) for row in rows]))


train = read("TRAIN", "train.csv")
sampler = DistributedSampler(train, num_replicas=xm.xrt_world_size(), rank=xm.get_ordinal())
loader = pl.MpDeviceLoader(DataLoader(train, batch_size=8, sampler=sampler), "xla")
model = torch.nn.Linear(2, 2).to("xla")
optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate)
for texts, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(texts), labels).backward()
    xm.optimizer_step(optimizer)

texts, labels = read("VAL", "test.csv").tensors
right = (model(texts.to("xla")).argmax(-1).cpu() == labels).float().mean()
accuracy = xm.mesh_reduce("accuracy", right.item(), lambda parts: sum(parts) / len(parts))
xm.save(model.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "checkpoint.pt"))
xm.master_print(f"accuracy={accuracy}")
