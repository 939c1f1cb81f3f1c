"""Every collective of `xm` and of the `xla` process group against what it should give, on 4 cores."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
from saying import say

dist.init_process_group("xla")
device = torch_xla.device()
RANK, WORLD = xr.global_ordinal(), xr.world_size()
GROUPS = [[0, 2], [1, 3]]
MINE = next(group for group in GROUPS if RANK in group)
checked = []


def of(rank, dtype=torch.float32):
    """The tensor that a rank brings; every rank can compute every other's."""
    generator = torch.Generator().manual_seed(rank + 1)
    return torch.randint(1, 9, (8, 4), generator=generator).to(dtype)


def check(name, got, wanted):
    got = got.cpu()
    assert got.dtype == wanted.dtype and got.shape == wanted.shape, (name, got.dtype, got.shape, wanted.shape)
    assert torch.equal(got, wanted), f"{name} on rank {RANK}: {got} instead of {wanted}"
    checked.append(name)


def stack(dtype=torch.float32, ranks=None):
    return torch.stack([of(rank, dtype) for rank in (range(WORLD) if ranks is None else ranks)])


# xm.all_reduce: every reduction, out of place, in place, scaled, in groups, several dtypes
for dtype in (torch.float32, torch.bfloat16, torch.int32):
    for reduce_type, wanted in (
        (xm.REDUCE_SUM, stack(dtype).sum(0).to(dtype)),
        (xm.REDUCE_MUL, stack(dtype).to(torch.float32).prod(0).to(dtype)),
        (xm.REDUCE_MIN, stack(dtype).amin(0)),
        (xm.REDUCE_MAX, stack(dtype).amax(0)),
    ):
        check(
            f"all_reduce {reduce_type} {dtype}",
            xm.all_reduce(reduce_type, of(RANK, dtype).to(device)),
            wanted,
        )
# One number has any shape: NxD Training's last stage has a loss of [], the others a zero of [1].
for name in ("in place", "out of place"):
    number = torch.full([1] if RANK % 2 else [], RANK + 1.0, device=device)
    if name == "in place":
        dist.all_reduce(number)
    else:
        number = xm.all_reduce(xm.REDUCE_SUM, number)
    check(f"all_reduce of a number, {name}", number, torch.full([1] if RANK % 2 else [], 10.0))
ints = stack(torch.int32)
check(
    "all_reduce or",
    xm.all_reduce(xm.REDUCE_OR, of(RANK, torch.int32).to(device)),
    ints[0] | ints[1] | ints[2] | ints[3],
)
check(
    "all_reduce and",
    xm.all_reduce(xm.REDUCE_AND, of(RANK, torch.int32).to(device)),
    ints[0] & ints[1] & ints[2] & ints[3],
)
tensors = [of(RANK).to(device), (of(RANK) * 2).to(device), of(RANK, torch.int32).to(device)]
xm.all_reduce(xm.REDUCE_SUM, tensors)
check("all_reduce list in place", tensors[0], stack().sum(0))
check("all_reduce list in place, second", tensors[1], stack().sum(0) * 2)
check("all_reduce list in place, int", tensors[2], ints.sum(0).to(torch.int32))
check(
    "all_reduce scale", xm.all_reduce(xm.REDUCE_SUM, of(RANK).to(device), scale=0.25), stack().sum(0) * 0.25
)
check(
    "all_reduce groups",
    xm.all_reduce(xm.REDUCE_SUM, of(RANK).to(device), groups=GROUPS),
    stack(ranks=MINE).sum(0),
)
check("all_reduce scalar", xm.all_reduce(xm.REDUCE_SUM, torch.tensor(RANK, device=device)), torch.tensor(6))

# xm.all_gather
for pin in (True, False):
    gathered = xm.all_gather(of(RANK).to(device), dim=0, pin_layout=pin)
    check(f"all_gather pin={pin}", gathered, torch.cat([of(r) for r in range(WORLD)], 0))
    gathered = xm.all_gather(of(RANK).to(device), dim=-1, groups=GROUPS, pin_layout=pin)
    check(f"all_gather groups dim=-1 pin={pin}", gathered, torch.cat([of(r) for r in MINE], 1))
output = torch.zeros(8 * WORLD, 4, device=device)
xm.all_gather(of(RANK).to(device), output=output, pin_layout=False)
check("all_gather output", output, torch.cat([of(r) for r in range(WORLD)], 0))
many = xm.all_gather([of(RANK).to(device), (of(RANK) + 1).to(device)], dim=1, pin_layout=False)
check("all_gather list", many[1], torch.cat([of(r) + 1 for r in range(WORLD)], 1))
bucketed = xm.all_gather_bucketized([of(RANK).to(device), (of(RANK) + 1).to(device)], dim=0)
check("all_gather_bucketized", bucketed[1], torch.cat([of(r) + 1 for r in range(WORLD)], 0))

# xm.reduce_scatter
total = stack().sum(0)
got = xm.reduce_scatter(xm.REDUCE_SUM, of(RANK).to(device), scale=0.5, scatter_dim=0, shard_count=WORLD)
check("reduce_scatter", got, total.chunk(WORLD, 0)[RANK] * 0.5)
got = xm.reduce_scatter(
    xm.REDUCE_MAX, of(RANK).to(device), scale=1.0, scatter_dim=1, shard_count=2, groups=GROUPS
)
check("reduce_scatter groups", got, stack(ranks=MINE).amax(0).chunk(2, 1)[MINE.index(RANK)])
got = xm.reduce_scatter_bucketized(
    xm.REDUCE_SUM, [of(RANK).to(device), of(RANK).to(device)], scale=1.0, scatter_dim=0, shard_count=WORLD
)
check("reduce_scatter_bucketized", got[1], total.chunk(WORLD, 0)[RANK])

# xm.all_to_all, collective_permute, collective_broadcast
got = xm.all_to_all(of(RANK).to(device), split_dimension=0, concat_dimension=1, split_count=WORLD)
check("all_to_all", got, torch.cat([of(r).chunk(WORLD, 0)[RANK] for r in range(WORLD)], 1))
ring = [[r, (r + 1) % WORLD] for r in range(WORLD)]
check("collective_permute", xm.collective_permute(of(RANK).to(device), pairs=ring), of((RANK - 1) % WORLD))
got = xm.collective_permute(of(RANK).to(device), pairs=[[0, 3]])
check("collective_permute one pair", got, of(0) if RANK == 3 else torch.zeros(8, 4))
tensor = of(RANK).to(device)
xm.collective_broadcast([tensor], root_ordinal=2)
check("collective_broadcast", tensor, of(2))

# As torch_xla has it: some results can be differentiated by, if what went in could, and no gradient passes through.
wanting = of(RANK).to(device).requires_grad_()
for name, result in (
    ("all_gather", xm.all_gather(wanting, pin_layout=False)),
    ("all_reduce", xm.all_reduce(xm.REDUCE_SUM, wanting, scale=0.5)),
    ("reduce_scatter", xm.reduce_scatter(xm.REDUCE_SUM, wanting, 1.0, 0, WORLD)),
    ("all_to_all", xm.all_to_all(wanting, 0, 0, WORLD)),
    ("collective_permute", xm.collective_permute(wanting, pairs=[[0, 1]])),
):
    assert result.is_leaf and result.requires_grad == (name != "all_gather"), name
# A scale has the dtype of what it scales, as in XLA.
counts = of(RANK, torch.int32).to(device)
half = xm.reduce_scatter(xm.REDUCE_SUM, counts, scale=0.5, scatter_dim=0, shard_count=WORLD)
check("reduce_scatter scale int", half, torch.zeros(2, 4, dtype=torch.int32))
half = xm.all_reduce(xm.REDUCE_SUM, counts, scale=2.7)
check("all_reduce scale int", half, (ints.sum(0) * 2).to(torch.int32))
for call in (
    lambda: xm.all_to_all(of(RANK).to(device), -2, 0, WORLD),
    lambda: xm.all_to_all(of(RANK).to(device), 0, -1, WORLD),
    lambda: xm.reduce_scatter(xm.REDUCE_SUM, of(RANK).to(device), 1.0, -2, WORLD),
):
    try:
        call()
    except ValueError as error:
        assert "XLA counts from 0 to 1, and none from the end" in str(error), error
    else:
        raise AssertionError("a dimension from the end was taken")
checked.append("dimensions")

# rendezvous, mesh_reduce
assert xm.rendezvous("names", f"rank {RANK}".encode()) == [f"rank {r}".encode() for r in range(WORLD)]
assert xm.rendezvous("empty") == [b""] * WORLD
assert xm.mesh_reduce("sum", RANK + 1, sum) == 10
assert xm.mesh_reduce("cat", torch.full((2,), RANK), lambda parts: torch.cat(parts).tolist()) == [
    0,
    0,
    1,
    1,
    2,
    2,
    3,
    3,
]
checked += ["rendezvous", "mesh_reduce"]

# the `xla` process group
tensor = of(RANK).to(device)
dist.all_reduce(tensor)
check("dist.all_reduce", tensor, stack().sum(0))
tensor = of(RANK).to(device)
dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
check("dist.all_reduce max", tensor, stack().amax(0))
parts = [torch.zeros(8, 4, device=device) for _ in range(WORLD)]
dist.all_gather(parts, of(RANK).to(device))
check("dist.all_gather", torch.stack(parts), stack())
output = torch.zeros(8 * WORLD, 4, device=device)
dist.all_gather_into_tensor(output, of(RANK).to(device))
check("dist.all_gather_into_tensor", output, torch.cat([of(r) for r in range(WORLD)]))
tensor = of(RANK).to(device)
dist.broadcast(tensor, src=1)
check("dist.broadcast", tensor, of(1))
output = torch.zeros(2, 4, device=device)
dist.reduce_scatter(output, [part.contiguous().to(device) for part in of(RANK).chunk(WORLD)])
check("dist.reduce_scatter", output, total.chunk(WORLD)[RANK])
output = torch.zeros(2, 4, device=device)
dist.reduce_scatter_tensor(output, of(RANK).to(device))
check("dist.reduce_scatter_tensor", output, total.chunk(WORLD)[RANK])
tensor = of(RANK).to(device)
dist.reduce(tensor, dst=2)
check("dist.reduce", tensor, total if RANK == 2 else of(RANK))
outputs = [torch.zeros(2, 4, device=device) for _ in range(WORLD)]
dist.all_to_all(outputs, [part.contiguous().to(device) for part in of(RANK).chunk(WORLD)])
check("dist.all_to_all", torch.stack(outputs), torch.stack([of(r).chunk(WORLD)[RANK] for r in range(WORLD)]))
output = torch.zeros(8, 4, device=device)
dist.all_to_all_single(output, of(RANK).to(device))
check("dist.all_to_all_single", output, torch.cat([of(r).chunk(WORLD)[RANK] for r in range(WORLD)]))
gathered = [torch.zeros(8, 4, device=device) for _ in range(WORLD)] if RANK == 1 else None
dist.gather(of(RANK).to(device), gathered, dst=1)
if RANK == 1:
    check("dist.gather", torch.stack(gathered), stack())
output = torch.zeros(8, 4, device=device)
dist.scatter(output, [of(10 + r).to(device) for r in range(WORLD)] if RANK == 0 else None, src=0)
check("dist.scatter", output, of(10 + RANK))
if RANK in (0, 1):
    tensor = of(RANK).to(device)
    if RANK == 0:
        dist.send(tensor, dst=1)
    else:
        dist.recv(tensor, src=0)
        check("dist.send/recv", tensor, of(0))
# Both send before either receives; then a second tensor on the same channel, of another dtype.
if os.environ["LOCAL_WORLD_SIZE"] != os.environ["WORLD_SIZE"]:
    for name, call in (("xm.send", xm.send), ("xm.recv", xm.recv)):
        try:
            call(of(RANK).to(device), 1)
        except RuntimeError as error:
            assert "in a job of several instances is not simulated" in str(error), error
            checked.append(f"{name} is refused")
elif RANK in (2, 3):
    other_rank = 5 - RANK
    sent = xm.send(of(RANK).to(device) * 2, channel_id=10 + RANK)
    check("xm.send", sent, of(RANK) * 2)
    output = torch.zeros(8, 4, device=device)
    received = xm.recv(output, channel_id=10 + other_rank)
    check("xm.recv", received, of(other_rank) * 2)
    check("xm.recv in place", output, of(other_rank) * 2)
    xm.send(of(RANK, torch.bfloat16).to(device), channel_id=10 + RANK)
    received = xm.recv(torch.zeros(8, 4, dtype=torch.bfloat16, device=device), channel_id=10 + other_rank)
    check("xm.recv again", received + 1, of(other_rank, torch.bfloat16) + 1)
group = dist.new_group([0, 2])
other = dist.new_group([1, 3])
tensor = of(RANK).to(device)
dist.all_reduce(tensor, group=group if RANK in (0, 2) else other)
check("dist.all_reduce in a group", tensor, stack(ranks=MINE).sum(0))
dist.barrier()

# torch.distributed's functional collectives, over all and in a group
mine = group if RANK in (0, 2) else other
for name, scope, ranks in (("", dist.group.WORLD, range(WORLD)), (" in a group", mine, MINE)):
    position, size = list(ranks).index(RANK), len(ranks)
    brought = [of(rank) for rank in ranks]
    check(f"functional all_reduce{name}", fc.all_reduce(of(RANK).to(device), "sum", scope), sum(brought))
    check(
        f"functional all_gather{name}",
        fc.all_gather_tensor(of(RANK).to(device), 0, scope),
        torch.cat(brought),
    )
    check(
        f"functional reduce_scatter{name}",
        fc.reduce_scatter_tensor(of(RANK).to(device), "sum", 0, scope),
        sum(brought).chunk(size)[position],
    )
    check(
        f"functional all_to_all{name}",
        fc.all_to_all_single(of(RANK)[:size].to(device), None, None, scope),
        torch.cat([tensor[position : position + 1] for tensor in brought]),
    )
    check(f"functional broadcast{name}", fc.broadcast(of(RANK).to(device), 1, scope), brought[1])

# In place, where tensors share memory. Of an expanded scalar's gradient each entry counts once.
parameter, other_parameter = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))
parameters = torch.nn.ParameterList([parameter, other_parameter]).to(device)
((parameters[0].sum() + 2 * parameters[1].sum()) * (RANK + 1)).backward()
optimizer = torch.optim.SGD(parameters, lr=1.0)
xm.optimizer_step(optimizer, barrier=True)
check("expanded gradient", parameters[0].detach(), torch.full((3,), 1 - 2.5))
check("expanded gradient 2", parameters[1].detach(), torch.full((2, 2), 1 - 5.0))
tensor = torch.stack([of(RANK), of(RANK)]).to(device)
xm.all_reduce(xm.REDUCE_SUM, [tensor[0].t()])
check("view", tensor, torch.stack([total, of(RANK)]))
tensor = of(RANK).to(device)
xm.all_reduce(xm.REDUCE_SUM, [tensor, tensor])
check("same tensor twice in one list", tensor, total)
torch.manual_seed(0)
model = torch.nn.Linear(4, 1).to(device)
ddp = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
ddp(of(RANK).to(device)).sum().backward()
check("DistributedDataParallel", model.weight.grad, stack().mean(0).sum(0, keepdim=True))
saved = torch.full((2,), 3.0, device=device, requires_grad=True)
squared = saved * saved
result = squared * squared
xm.all_reduce(xm.REDUCE_SUM, [squared.detach()])
result.sum().backward()
checked.append("in place on what autograd has saved")


# Compiled functions: their graphs are kept, the collective takes place every time.
def twice_the_sum(value):
    return xm.all_reduce(xm.REDUCE_SUM, value * 2) + 1


if "--compiled" in sys.argv:
    for name, compiled in (
        ("torch_xla.compile", torch_xla.compile(twice_the_sum, full_graph=True)),
        ("torch.compile", torch.compile(twice_the_sum, backend="openxla")),
    ):
        for factor in (1, 2, 3):
            check(name, compiled((of(RANK) * factor).to(device)), total * factor * 2 + 1)

say(checked=sorted(set(checked)))
