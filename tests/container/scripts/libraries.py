"""What the libraries above torch_xla do on simulated cores, against plain PyTorch on the CPU. Says what holds."""

import os
import sys
import traceback

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
import torch_xla.utils.serialization as xser
from saying import say
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("xla")
FOLDER = sys.argv[1]
DEVICE = torch_xla.device()
RANK, WORLD = xr.global_ordinal(), xr.world_size()
STEPS, BATCH, WIDTH = 4, 8, 16
ADAMW = {"lr": 1e-2, "weight_decay": 0.1}
checks = {}


def check(function):
    checks[function.__name__] = function
    return function


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))


def data(step):
    """The whole batch of a step, all ranks' parts one after the other."""
    generator = torch.Generator().manual_seed(100 + step)
    return torch.randn(WORLD * BATCH, WIDTH, generator=generator), torch.randn(
        WORLD * BATCH, 4, generator=generator
    )


def mine(step):
    return [part.chunk(WORLD)[RANK].to(DEVICE) for part in data(step)]


def loss_of(model, inputs, targets):
    return nn.functional.mse_loss(model(inputs), targets)


def reference(optimizer=torch.optim.AdamW, steps=range(STEPS), clip=None, **options):
    """Plain PyTorch on the CPU with the whole batch: the parameters after training."""
    model = network()
    optimizer = optimizer(model.parameters(), **(options or ADAMW))
    for step in steps:
        optimizer.zero_grad()
        loss_of(model, *data(step)).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return model.state_dict()


def train(model, step_of_optimizer, steps=range(STEPS)):
    for step in steps:
        model.zero_grad()
        loss_of(model, *mine(step)).backward()
        step_of_optimizer()
        torch_xla.sync()


def same(got, wanted, tolerance=2e-5):
    assert set(got) == set(wanted), (list(got), list(wanted))
    for name in wanted:
        torch.testing.assert_close(
            got[name].cpu(), wanted[name], rtol=tolerance, atol=tolerance, msg=lambda m: f"{name}: {m}"
        )


def on_all_ranks(state):
    for name, value in state.items():
        gathered = xm.all_gather(value.to(DEVICE).unsqueeze(0)).cpu()
        assert all(torch.equal(row, gathered[0]) for row in gathered), name


@check
def optimizer_step():
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    train(model, lambda: xm.optimizer_step(optimizer))
    same(model.state_dict(), reference())
    on_all_ranks(model.state_dict())


@check
def gradients_of_each_sample():
    """What vmap has wrapped is a tensor of the device among the live objects, and has no memory of its own."""
    from torch.func import functional_call, grad, vmap

    def trained(device):
        model = network().to(device)
        weights = {name: weight.detach() for name, weight in model.named_parameters()}

        def loss(weights, inputs, targets):
            return nn.functional.mse_loss(functional_call(model, weights, (inputs[None],)), targets[None])

        for step in range(STEPS):
            inputs, targets = (part.to(device) for part in data(step))
            found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, inputs, targets)
            weights = {name: weight - 0.1 * found[name].mean(0) for name, weight in weights.items()}
            if device != "cpu":
                torch_xla.sync()
        return weights

    same(trained(DEVICE), trained("cpu"))


@check
def zero_1():
    from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer

    for clip in (None, 0.05):
        for options in (
            {},
            {"bucket_cap_mb_all_gather": 1, "bucket_cap_mb_reduce_scatter": 1},
            # The norm is summed over both: no rank holds a part of the model that its group does not hold.
            {"sharding_groups": [[0, 1], [2, 3]], "grad_norm_groups": [[0], [1], [2], [3]]},
        ):
            if ("sharding_groups" in options) != (WORLD == 4):
                continue
            model = network().to(DEVICE)
            optimizer = ZeroRedundancyOptimizer(
                model.parameters(),
                torch.optim.AdamW,
                grad_clipping=clip is not None,
                max_norm=clip,
                pin_layout=False,
                **options,
                **ADAMW,
            )
            if "sharding_groups" in options:

                def step(optimizer=optimizer, model=model):
                    # Between the groups, gradients are the user's to reduce.
                    xm.all_reduce(xm.REDUCE_SUM, [p.grad for p in model.parameters()], 0.5, [[0, 2], [1, 3]])
                    optimizer.step()
            else:
                step = optimizer.step
            train(model, step)
            same(model.state_dict(), reference(clip=clip))
    held = sum(
        v.numel() for state in optimizer.base_optimizer.state.values() for v in state.values() if v.dim()
    )
    assert held < sum(p.numel() for p in model.parameters()) * 2 / min(2, WORLD) * 1.2


@check
def zero_1_state_dict():
    from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer

    def make(model):
        return ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.AdamW, grad_clipping=False, pin_layout=False, **ADAMW
        )

    model = network().to(DEVICE)
    optimizer = make(model)
    train(model, optimizer.step, range(2))
    xser.save(
        {"m": model.state_dict(), "o": optimizer.state_dict()}, f"{FOLDER}/zero.{RANK}", master_only=False
    )
    model = network().to(DEVICE)
    optimizer = make(model)
    saved = xser.load(f"{FOLDER}/zero.{RANK}")
    model.load_state_dict(saved["m"])
    optimizer.load_state_dict(saved["o"])
    train(model, optimizer.step, range(2, STEPS))
    same(model.state_dict(), reference())


@check
def fsdp():
    from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel as FSDP
    from torch_xla.distributed.fsdp import checkpoint_module, consolidate_sharded_state_dicts

    for options in (
        {},
        {"flatten_parameters": False, "shard_param_on_dim_0": True, "pin_layout_in_collective_ops": False},
        # Not coalesce_all_gather_ops: this torch_xla then leaves its freed placeholder in the parameters,
        # on a plain CPU device too ("Cannot infer shape for dot operation").
        {"reshard_after_forward": False, "pin_layout_in_collective_ops": False},
    ):
        model = network()
        for index in (0, 2):
            model[index] = FSDP(checkpoint_module(model[index]) if not options else model[index], **options)
        model = FSDP(model, **options)
        optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
        train(model, optimizer.step)
        saved = {
            "model": {k: v.cpu() for k, v in model.state_dict().items()},
            "shard_metadata": model.get_shard_metadata(),
        }
        torch.save(saved, f"{FOLDER}/fsdp.{RANK}")
        xm.rendezvous("fsdp")
        parts = [torch.load(f"{FOLDER}/fsdp.{rank}", weights_only=False) for rank in range(WORLD)]
        whole = consolidate_sharded_state_dicts([p["model"] for p in parts], parts[0]["shard_metadata"])
        same({k.replace("_orig_mod.", ""): v for k, v in whole.items()}, reference())
        xm.rendezvous("fsdp read")


@check
def fsdp_clips():
    from torch_xla.distributed.fsdp import XlaFullyShardedDataParallel as FSDP

    model = FSDP(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def step():
        norm = model.clip_grad_norm_(0.05)
        assert norm.item() > 0.05
        optimizer.step()

    train(model, step)
    with torch.no_grad():
        got = model(data(0)[0].to(DEVICE)).cpu()
    plain = network()
    plain.load_state_dict(reference(torch.optim.SGD, clip=0.05, lr=0.5))
    torch.testing.assert_close(got, plain(data(0)[0]), rtol=1e-4, atol=1e-5)


@check
def serialization():
    torch.manual_seed(RANK)
    state = {
        "tensor": torch.randn(4, 4).to(DEVICE),
        "nested": [torch.arange(3).to(DEVICE), {"text": "as is", "n": 5}],
    }
    state["bf16"] = torch.randn(7, device=DEVICE).to(torch.bfloat16)
    xser.save(state, f"{FOLDER}/xser", master_only=True, global_master=True)
    xm.rendezvous("xser written")  # save does not wait for the one that writes
    loaded = xser.load(f"{FOLDER}/xser")
    torch.manual_seed(0)
    assert torch.equal(loaded["tensor"], torch.randn(4, 4)) and loaded["nested"][1] == {
        "text": "as is",
        "n": 5,
    }
    xser.save(state, f"{FOLDER}/xser.{RANK}", master_only=False)
    again = xser.load(f"{FOLDER}/xser.{RANK}")
    assert torch.equal(again["tensor"], state["tensor"].cpu()) and torch.equal(
        again["bf16"], state["bf16"].cpu()
    )
    xm.rendezvous("xser read")


@check
def save_and_load():
    xm.save({"rank": torch.tensor(RANK, device=DEVICE), "x": [1, "two"]}, f"{FOLDER}/xm.pt")
    xm.rendezvous("xm written")
    plain = torch.load(f"{FOLDER}/xm.pt", weights_only=True)
    assert plain["rank"].device.type == "cpu" and plain["rank"].item() == 0 and plain["x"] == [1, "two"]
    torch.save({"w": torch.ones(3, device=DEVICE)}, f"{FOLDER}/xla.{RANK}")
    assert torch.load(f"{FOLDER}/xla.{RANK}", weights_only=True)["w"].device.type == "xla"
    assert torch.load(f"{FOLDER}/xla.{RANK}", map_location="cpu")["w"].device.type == "cpu"


@check
def resume():
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, STEPS)

    def step():
        xm.optimizer_step(optimizer)
        scheduler.step()

    train(model, step, range(2))
    xm.save(
        {"m": model.state_dict(), "o": optimizer.state_dict(), "s": scheduler.state_dict()},
        f"{FOLDER}/resume.pt",
    )
    train(model, step, range(2, STEPS))
    uninterrupted = {name: value.cpu() for name, value in model.state_dict().items()}
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, STEPS)
    saved = torch.load(f"{FOLDER}/resume.pt")
    model.load_state_dict(saved["m"])
    optimizer.load_state_dict(saved["o"])
    scheduler.load_state_dict(saved["s"])
    train(model, step, range(2, STEPS))
    same(model.state_dict(), uninterrupted, 1e-7)


@check
def autocast():
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    seen = []
    for step in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("xla", dtype=torch.bfloat16):
            inputs, targets = mine(step)
            output = model(inputs)
            seen.append(output.dtype)
            loss = nn.functional.mse_loss(output.float(), targets)
        loss.backward()
        xm.optimizer_step(optimizer)
    assert set(seen) == {torch.bfloat16}
    assert all(p.dtype == torch.float32 and p.grad.dtype == torch.float32 for p in model.parameters())
    same(model.state_dict(), reference(), 0.05)


@check
def gradient_accumulation():
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, targets = mine(step)
        for part, wanted in zip(inputs.chunk(4), targets.chunk(4), strict=True):
            (loss_of(model, part, wanted) / 4).backward()
            torch_xla.sync()
        xm.optimizer_step(optimizer)
    same(model.state_dict(), reference())


@check
def reduce_gradients_and_clip():
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)

    def step():
        xm.reduce_gradients(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()

    train(model, step)
    same(model.state_dict(), reference(clip=0.05))
    os.environ["ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB"] = "0"
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    train(model, step)
    os.environ["ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB"] = "50"
    same(model.state_dict(), reference(clip=0.05))


@check
def ddp():
    """In many buckets. bucketed.py has one, of views or copies."""
    model = network().to(DEVICE)
    wrapped = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=0.001)
    optimizer = torch.optim.AdamW(wrapped.parameters(), **ADAMW)
    train(wrapped, optimizer.step)
    same(model.state_dict(), reference())


@check
def ddp_without_synchronisation():
    model = network().to(DEVICE)
    wrapped = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    inputs, targets = mine(0)
    with wrapped.no_sync():
        (loss_of(wrapped, inputs[:4], targets[:4]) / 2).backward()
    (loss_of(wrapped, inputs[4:], targets[4:]) / 2).backward()
    optimizer.step()
    same(model.state_dict(), reference(torch.optim.SGD, range(1), lr=0.1))


@check
def broadcast_master_param():
    torch.manual_seed(RANK)
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(DEVICE)
    xm.broadcast_master_param(model)
    torch.manual_seed(0)
    same(model.state_dict(), nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).state_dict(), 0)


@check
def differentiable_collectives():
    from torch_xla.core.functions import all_gather, all_reduce

    value = torch.full((2,), float(RANK + 1), device=DEVICE, requires_grad=True)
    all_reduce(xm.REDUCE_SUM, value).square().sum().backward()
    total = WORLD * (WORLD + 1) / 2
    assert torch.equal(value.grad.cpu(), torch.full((2,), 2 * total)), value.grad
    value = torch.full((2,), float(RANK + 1), device=DEVICE, requires_grad=True)
    gathered = all_gather(value)
    (gathered * torch.arange(2.0 * WORLD, device=DEVICE)).sum().backward()
    assert torch.equal(value.grad.cpu(), torch.arange(2.0 * WORLD)[2 * RANK : 2 * RANK + 2]), value.grad


@check
def step_closures():
    seen = []
    for step in range(3):
        value = torch.tensor(float(step), device=DEVICE) * 2
        xm.add_step_closure(
            lambda value, step: seen.append((step, value.item())), args=(value, step), run_async=step == 1
        )
        torch_xla.sync(wait=True)
    import time

    deadline = time.time() + 10
    while len(seen) < 3 and time.time() < deadline:
        time.sleep(0.05)
    assert sorted(seen) == [(0, 0.0), (1, 2.0), (2, 4.0)], seen


@check
def device_loaders():
    dataset = TensorDataset(torch.arange(20).float())
    for options in (
        {},
        {"batches_per_execution": 2},
        {"loader_prefetch_size": 2, "device_prefetch_size": 1},
        {"host_to_device_transfer_threads": 2},
    ):
        loader = pl.MpDeviceLoader(
            DataLoader(dataset, batch_size=4, num_workers=2 if not options else 0), DEVICE, **options
        )
        assert len(loader) == 5
        for _ in range(2):
            rows = [batch[0] for batch in loader]
            assert all(row.device.type == "xla" for row in rows)
            assert torch.equal(torch.cat(rows).cpu().sort()[0], torch.arange(20).float()), options
    plain = pl.ParallelLoader(DataLoader(dataset, batch_size=4), [DEVICE]).per_device_loader(DEVICE)
    assert len(list(plain)) == 5
    nested = [{"a": torch.ones(2), "b": [torch.zeros(1), "text"]}]
    (got,) = pl.MpDeviceLoader(nested, DEVICE)
    assert got["a"].device.type == "xla" and got["b"][1] == "text"
    for index, (batch,) in enumerate(pl.MpDeviceLoader(DataLoader(dataset, batch_size=4), "xla")):
        if index == 1:
            break  # leaves the loader's threads in the middle
    assert batch.device.type == "xla"


@check
def torch_compile():
    model = network().to(DEVICE)
    compiled = torch.compile(model, backend="openxla")
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(compiled, *mine(step)).backward()
        xm.optimizer_step(optimizer)
        torch_xla.sync()
    same(model.state_dict(), reference())


@check
def torch_xla_compile_step():
    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)

    @torch_xla.compile
    def step(inputs, targets):
        optimizer.zero_grad()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        xm.optimizer_step(optimizer)
        return loss

    for index in range(STEPS):
        step(*mine(index))
    same(model.state_dict(), reference())
    with torch_xla.step():
        twice = torch.ones(2, device=DEVICE) * 2
    assert twice.sum().item() == 4


@check
def activation_checkpointing():
    from torch_xla.utils.checkpoint import checkpoint

    model = network().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    for step in range(STEPS):
        optimizer.zero_grad()
        inputs, targets = mine(step)
        middle = model[:2](inputs)
        output = model[4](checkpoint(model[2:4], middle))
        nn.functional.mse_loss(output, targets).backward()
        xm.optimizer_step(optimizer)
        torch_xla.sync()
    same(model.state_dict(), reference())


@check
def syncfree_and_amp_names():
    from torch_xla.amp import autocast as old_autocast
    from torch_xla.amp import syncfree

    model = network().to(DEVICE)
    optimizer = syncfree.AdamW(model.parameters(), **ADAMW)
    train(model, lambda: xm.optimizer_step(optimizer))
    same(model.state_dict(), reference())
    with old_autocast(DEVICE, dtype=torch.bfloat16):
        assert model(mine(0)[0]).dtype == torch.bfloat16


@check
def process_groups():
    halves = [dist.new_group([r for r in range(WORLD) if r % 2 == half]) for half in range(2)]
    tensor = torch.tensor([float(RANK)], device=DEVICE)
    dist.all_reduce(tensor, group=halves[RANK % 2])
    assert tensor.item() == sum(r for r in range(WORLD) if r % 2 == RANK % 2)
    tensor = torch.full((3,), float(RANK), device=DEVICE)
    dist.broadcast(tensor, src=RANK % 2, group=halves[RANK % 2])
    assert tensor.cpu().tolist() == [RANK % 2] * 3
    assert dist.get_rank() == RANK and dist.get_world_size() == WORLD and dist.get_backend() == "xla"
    assert dist.get_world_size(halves[RANK % 2]) == len(range(RANK % 2, WORLD, 2))
    gloo = dist.new_group(backend="gloo")
    host = torch.tensor([RANK])
    dist.all_reduce(host, group=gloo)
    assert host.item() == sum(range(WORLD))
    found = [None] * WORLD
    dist.all_gather_object(found, {"rank": RANK}, group=gloo)
    assert found == [{"rank": rank} for rank in range(WORLD)]
    dist.barrier(group=gloo)
    work = dist.all_reduce(torch.ones(2, device=DEVICE), async_op=True)
    work.wait()


@check
def accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator()
    assert accelerator.num_processes == WORLD and accelerator.process_index == RANK
    whole = [data(step) for step in range(STEPS)]
    dataset = TensorDataset(torch.cat([part[0] for part in whole]), torch.cat([part[1] for part in whole]))
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(dataset, batch_size=BATCH))
    for inputs, targets in loader:
        optimizer.zero_grad()
        accelerator.backward(loss_of(model, inputs, targets))
        accelerator.clip_grad_norm_(model.parameters(), 100.0)
        optimizer.step()
    same(accelerator.unwrap_model(model).state_dict(), reference(clip=100.0))
    assert accelerator.gather(torch.tensor([RANK], device=accelerator.device)).cpu().tolist() == list(
        range(WORLD)
    )
    accelerator.wait_for_everyone()


for name in sys.argv[2:] or checks:
    try:
        checks[name]()
        say(check=name)
    except Exception:
        say(check=name, failure=traceback.format_exc()[-1500:])
        # What follows would meet ranks that are out of step.
        raise
