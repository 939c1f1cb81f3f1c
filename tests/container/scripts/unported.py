"""A port that has not got far: on the CPU, its optimizer there, without an end of a step, or with each core on its own."""

import os
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

how = sys.argv[1]


def meet() -> None:
    """Wait for the other core: nothing else keeps two together that exchange nothing."""
    folder = Path(os.environ["WINDTUNNEL_COUNTERS_DIR"])
    (folder / f"met.{os.environ['RANK']}").touch()
    while len(list(folder.glob("met.*"))) < 2:
        time.sleep(0.01)


class Drawn(TensorDataset):
    """Made-up samples."""

    def __getitem__(self, index):
        return torch.randn(8), torch.randn(1)


class Placeholder(TensorDataset):
    """Samples that are all alike, to be trained on before there are any."""

    def __getitem__(self, index):
        return torch.zeros(8), torch.zeros(1)


class Streamed(IterableDataset):
    """The samples of a data set, without an index."""

    def __init__(self, samples):
        self.samples = samples

    def __iter__(self):
        return iter(self.samples)


class Batches:
    """A loader of the script's own, or of a library that has nothing of torch's."""

    def __init__(self, samples):
        self.samples = samples

    def __iter__(self):
        return (self.samples[first : first + 4] for first in range(0, len(self.samples), 4))


torch.manual_seed(int(os.environ["RANK"]) if how in ("unseeded", "unseeded_placeholder", "sent") else 0)
if how in ("unseeded", "sent"):
    os.environ["XLA_USE_BF16"] = "1"
if how != "cpu":
    import torch_xla
    import torch_xla.core.xla_model as xm
    import torch_xla.distributed.parallel_loader as pl
    import torch_xla.runtime as xr

device = "cpu" if how == "cpu" else torch_xla.device()
model = torch.nn.Linear(8, 1)
if how == "before":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # line: optimizer
model = model.to(device)  # line: moved
if how in ("sent", "apart", "averaged"):
    xm.broadcast_master_param(model)
if how not in ("before", "by_hand"):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(96, 8), torch.randn(96, 1))
if how == "drawn":
    dataset = Drawn(*dataset.tensors)
if how.endswith("placeholder"):
    dataset = Placeholder(*dataset.tensors)
if how == "streamed":
    dataset = Streamed(dataset)
shares = how.endswith(
    ("drawn", "placeholder", "unseeded", "sent", "averaged", "saved", "ported", "forgotten")
)
sampler = DistributedSampler(dataset, xr.world_size(), xr.global_ordinal()) if shares else None
loader = DataLoader(dataset, batch_size=4, sampler=sampler)  # line: made
if how == "own":
    loader = Batches(dataset)
if shares or how in ("apart", "by_hand", "streamed", "own"):
    loader = pl.MpDeviceLoader(loader, device)
for step, (features, labels) in enumerate(loader):  # line: went
    if how in ("apart", "by_hand", "drawn", "placeholder", "streamed", "own", "unended") and step == 4:
        meet()  # both have seen as many batches as are compared
    if how == "saved" and step == 4:
        model.cpu()  # line: left
        model.to(device)
    model.zero_grad()
    loss = torch.nn.functional.mse_loss(model(features.to(device)), labels.to(device))
    if how != "forgotten":
        loss.backward()  # line: backward
    if how == "by_hand":
        for weight in model.parameters():
            weight.data.add_(-0.1 * weight.grad)
    elif how == "averaged":
        optimizer.step()
        if step == 7:  # seldom
            xm.all_reduce("sum", [weight.data for weight in model.parameters()], 1 / xr.world_size())
    elif shares:
        xm.optimizer_step(optimizer)  # line: exchanged
    else:
        optimizer.step()  # line: step
    if how == "apart":  # its figures are of all cores, and that is all they share
        xm.all_reduce("sum", [loss.detach()])
        if step in (2, 12):
            xm.mesh_reduce("samples", len(labels), sum)
if int(os.environ["RANK"]) == 0:  # without an exchange the other is not waited for
    print("loss", float(loss))
