"""Values read in each step: behind the exchange of gradients, below DistributedDataParallel, a step later, and behind a
forward pass that exchanges something itself.
"""

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend

STEPS = 4

dist.init_process_group("xla")
device = torch_xla.device()
torch.manual_seed(0)


def model() -> torch.nn.Module:
    layers = torch.nn.Linear(32, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers).to(device)


def batches() -> pl.MpDeviceLoader:
    return pl.MpDeviceLoader([torch.full((8, 32), dist.get_rank() + 1.0) for _ in range(STEPS)], device)


total = 0.0
seen: list[float] = []
plain = model()
optimizer = torch.optim.SGD(plain.parameters(), lr=1e-6)
for batch in batches():
    loss = plain(batch).square().mean()
    (loss / 2).backward()
    xm.optimizer_step(optimizer)
    total += loss.item()
    print(f"{loss.detach():.3f}")
wrapped = torch.nn.parallel.DistributedDataParallel(model(), gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(wrapped.parameters(), lr=1e-6)
for batch in batches():
    loss = wrapped(batch).square().mean()
    loss.backward()
    total += float(loss.cpu())
    optimizer.step()
last = model()
optimizer = torch.optim.SGD(last.parameters(), lr=1e-6)
before = torch.zeros(())
for batch in batches():
    loss = last(batch).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    total += before.item()
    before = loss.detach()
ended = model()
optimizer = torch.optim.SGD(ended.parameters(), lr=1e-6)
for batch in batches():
    loss = ended(batch).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    if len(seen) < 2:
        xm.mark_step()
        seen.append(loss.item())
    else:
        xm.add_step_closure(lambda value: seen.append(value.item()), args=(loss,))
clipped = model()
optimizer = torch.optim.SGD(clipped.parameters(), lr=1e-6)
for batch in batches():
    clipped(batch).square().mean().backward()
    xm.reduce_gradients(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(clipped.parameters(), 1.0)
    optimizer.step()
    total += norm.item()
    optimizer.zero_grad()
watched = model()
optimizer = torch.optim.SGD(watched.parameters(), lr=1e-6)
guessed = torch.zeros(1, dtype=torch.long)
for batch in batches():
    wanted = torch.zeros(8, dtype=torch.long).to(device)
    scores = watched(batch)
    loss = torch.nn.functional.cross_entropy(scores, wanted)
    loss.backward()
    guess = scores.argmax(1)
    xm.optimizer_step(optimizer)
    total += loss.item()
    total += scores.argmax(1).eq(wanted).sum().item()
    total += guess.eq(wanted).sum().item() + guess.cpu()[0]
    total += wanted.sum().item() + batch.cpu().sum() + guessed.cpu()[0]
    guessed = guess
taught, teacher = model(), model()
optimizer = torch.optim.SGD(taught.parameters(), lr=1e-6)
for batch in batches():
    with torch.no_grad():
        centre = teacher(batch).mean(0)
        dist.all_reduce(centre)
    loss = (taught(batch) - centre).square().mean()
    loss.backward()
    xm.optimizer_step(optimizer)
    total += loss.item()
for batch in batches():
    with torch.no_grad():
        centre = teacher(batch).mean(0)
        gathered = [torch.zeros_like(centre) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, centre)
    optimizer.zero_grad()
    loss = (taught(batch) - gathered[0]).square().mean()
    total += loss.item()
    loss.backward()
    xm.optimizer_step(optimizer)
