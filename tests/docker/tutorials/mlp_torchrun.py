"""Train a perceptron on all cores: one process a core, started by torchrun."""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from digits import MLP, dataset
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--model_dir", default=os.environ.get("SM_MODEL_DIR", "."))
WARMUP_STEPS = 2


def main(arguments):
    device = "xla"
    torch.manual_seed(0)
    model = MLP().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2 * xr.world_size())
    criterion = torch.nn.NLLLoss()
    data = dataset(1024)
    sampler = DistributedSampler(data, num_replicas=xr.world_size(), rank=xr.global_ordinal(), shuffle=True)
    loader = pl.MpDeviceLoader(
        DataLoader(data, batch_size=arguments.batch_size, sampler=sampler, drop_last=True), device
    )
    model.train()
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        start = time.time()
        for index, (pictures, labels) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(pictures), labels)
            loss.backward()
            xm.optimizer_step(optimizer)
            if index < WARMUP_STEPS:
                start = time.time()
        rate = (index + 1 - WARMUP_STEPS) / (time.time() - start)
        xm.master_print(
            f"epoch={epoch} loss={loss.detach().to('cpu'):.4f} iterations/s={rate:.1f}", flush=True
        )

    weight = model.layers[0].weight.detach()
    spread = xm.all_reduce(xm.REDUCE_MAX, weight) - xm.all_reduce(xm.REDUCE_MIN, weight)
    # One write: the other core writes its line at the same moment.
    sys.stdout.write(
        f"rank {xr.global_ordinal()} of {xr.world_size()}: parameters differ by {spread.abs().max().item()}\n"
    )
    sys.stdout.flush()
    os.makedirs(arguments.model_dir, exist_ok=True)  # noqa: PTH103
    xm.save({"state_dict": model.state_dict()}, os.path.join(arguments.model_dir, "checkpoint.pt"))  # noqa: PTH118
    torch_xla.sync()


if __name__ == "__main__":
    dist.init_process_group("xla")
    main(parser.parse_args())
