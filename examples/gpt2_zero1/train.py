"""Train a small GPT-2 with ZeRO-1: each core holds the optimizer's state for its own part of the parameters."""

import argparse
import os

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
import torch_xla.utils.serialization as xser
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from transformers import GPT2Config, GPT2LMHeadModel, get_scheduler

LENGTH, VOCABULARY = 32, 64
os.environ["NEURON_CC_FLAGS"] = os.environ.get("NEURON_CC_FLAGS", "") + " --model-type=transformer"


class Counting(Dataset):
    """Sequences that count up by ones, twos or threes."""

    def __init__(self, samples):
        start, by = torch.arange(samples) % 41, torch.arange(samples) % 3 + 1
        self.tokens = (start[:, None] + by[:, None] * torch.arange(LENGTH)) % VOCABULARY

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def make_optimizer(model, lr):
    decayed = [
        parameter for name, parameter in model.named_parameters() if "ln_" not in name and "bias" not in name
    ]
    others = [parameter for name, parameter in model.named_parameters() if "ln_" in name or "bias" in name]
    return ZeroRedundancyOptimizer(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
        torch.optim.AdamW,
        lr=lr,
        grad_clipping=True,
        max_norm=1.0,
        pin_layout=False,
    )


def save_and_load(model, optimizer, path, world, rank):
    """Save and load a checkpoint: a file for each rank. Raises ValueError if the models in the files differ."""
    xser.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path, master_only=False)
    xm.rendezvous("saved")
    saved = xser.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    for other in range(world):
        other_path = path.replace(f"rank_{rank}", f"rank_{other}")
        theirs = xser.load(other_path)["model"]
        if not all(torch.equal(saved["model"][name], theirs[name]) for name in theirs):
            raise ValueError(f"the checkpoints of ranks {rank} and {other} differ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--checkpoint_dir", default="/opt/ml/checkpoints")
    arguments = parser.parse_args()
    device = torch_xla.device()
    world, rank = xr.world_size(), xr.global_ordinal()
    xm.set_rng_state(1234, device)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=64, n_layer=1, n_head=2, use_cache=False
    )
    model = GPT2LMHeadModel(config).to(device)
    model.tie_weights()
    model.train()
    optimizer = make_optimizer(model, arguments.lr)
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=arguments.steps)
    data = Counting(8 * world * arguments.steps)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True)
    loader = pl.MpDeviceLoader(DataLoader(data, batch_size=8, sampler=sampler, drop_last=True), device)

    def log(step, loss, rate):
        if xm.is_master_ordinal(local=False):
            print(f"step={step} loss={loss.item() / world:.4f} lr={rate:.2e}", flush=True)

    for step, batch in enumerate(loader, 1):
        with torch.autocast("xla", dtype=torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 4 == 0:
            total = xm.all_reduce(xm.REDUCE_SUM, loss.detach())
            xm.add_step_closure(log, (step, total, scheduler.get_last_lr()[0]), run_async=False)
    sharded = sum(
        value.numel() for state in optimizer.base_optimizer.state.values() for value in state.values()
    )
    whole = sum(parameter.numel() for parameter in model.parameters())
    print(f"rank {rank}: optimizer state holds {sharded / whole:.2f} values a parameter", flush=True)

    os.makedirs(arguments.checkpoint_dir, exist_ok=True)  # noqa: PTH103
    path = os.path.join(arguments.checkpoint_dir, f"step_{arguments.steps}_rank_{rank}.pt")  # noqa: PTH118
    save_and_load(model, optimizer, path, world, rank)
    if rank == 0:
        model.to("cpu").save_pretrained(os.environ.get("SM_MODEL_DIR", "model"))
    xm.rendezvous("checkpoint loaded, model saved")


if __name__ == "__main__":
    dist.init_process_group("xla")
    main()
