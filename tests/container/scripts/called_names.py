"""Calls names of the table on two cores, and says which came out wrong."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.debug.profiler as xp
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
import torch_xla.test.test_utils as test_utils
import torch_xla.utils.serialization as xser
from saying import say
from torch_xla.amp import autocast, syncfree
from torch_xla.utils.checkpoint import checkpoint

import torch_neuronx
from torch_neuronx.xla_impl.ops import RmsNorm

dist.init_process_group("xla")
device, rank, world = torch_xla.device(), xr.global_ordinal(), xr.world_size()
folder = tempfile.mkdtemp()
wrong = {}


def ones(*shape):
    return torch.full(shape or (4,), float(rank + 1), device=device)


def expect(name, call, wanted=None):
    try:
        got = call()
        got = got.cpu().float().tolist() if isinstance(got, torch.Tensor) else got
        if wanted is not None and got != wanted:
            wrong[name] = f"{got} instead of {wanted}"
    except Exception as error:
        wrong[name] = f"{type(error).__name__}: {str(error)[:200]}"


def into(output, call):
    call(output)
    return output


# torch.distributed: every rank has the value rank + 1.
expect("dist.all_reduce", lambda: into(ones(), dist.all_reduce), [3.0] * 4)
expect(
    "dist.all_gather",
    lambda: torch.stack(into([ones(), ones()], lambda o: dist.all_gather(o, ones()))).sum(1),
    [4.0, 8.0],
)
expect(
    "dist.all_gather_into_tensor",
    lambda: into(ones(8), lambda o: dist.all_gather_into_tensor(o, ones())).sum(),
    12.0,
)
expect("dist.broadcast", lambda: into(ones(), lambda o: dist.broadcast(o, 1)), [2.0] * 4)
expect(
    "dist.reduce",
    lambda: into(ones(), lambda o: dist.reduce(o, 0))[0].item() if rank == 0 else dist.reduce(ones(), 0),
    3.0 if rank == 0 else None,
)
expect(
    "dist.reduce_scatter", lambda: into(ones(), lambda o: dist.reduce_scatter(o, [ones(), ones()])), [3.0] * 4
)
expect(
    "dist.reduce_scatter_tensor",
    lambda: into(ones(2), lambda o: dist.reduce_scatter_tensor(o, ones())),
    [3.0] * 2,
)
expect(
    "dist.all_to_all",
    lambda: torch.stack(into([ones(1), ones(1)], lambda o: dist.all_to_all(o, [ones(1), ones(1)]))).flatten(),
    [1.0, 2.0],
)
expect(
    "dist.all_to_all_single", lambda: into(ones(2), lambda o: dist.all_to_all_single(o, ones(2))), [1.0, 2.0]
)
expect("dist.gather", lambda: dist.gather(ones(), [ones(), ones()] if rank == 0 else None, dst=0))
expect(
    "dist.scatter",
    lambda: into(ones(1), lambda o: dist.scatter(o, [ones(1), ones(1) * 5] if rank == 0 else None, src=0)),
    [1.0 if rank == 0 else 5.0],
)
expect(
    "dist.send/recv",
    lambda: into(ones(), (lambda o: dist.send(o, 1)) if rank == 0 else (lambda o: dist.recv(o, 0))),
    [1.0] * 4,
)
expect(
    "dist.isend/irecv",
    lambda: into(
        ones(), (lambda o: dist.isend(o, 1).wait()) if rank == 0 else (lambda o: dist.irecv(o, 0).wait())
    ),
    [1.0] * 4,
)
expect("dist.barrier", dist.barrier)
expect("dist.new_group", lambda: dist.get_world_size(dist.new_group([0, 1])), 2)


def expect_refusal(name, call):
    try:
        call()
        wrong[name] = "nothing was refused"
    except (NotImplementedError, RuntimeError, ValueError):
        pass


expect_refusal("dist.monitored_barrier", dist.monitored_barrier)
expect_refusal("dist.all_reduce_coalesced", lambda: dist.all_reduce_coalesced([ones()]))
expect_refusal("dist.all_gather_object", lambda: dist.all_gather_object([None, None], rank))
expect_refusal("dist.broadcast_object_list", lambda: dist.broadcast_object_list([rank], 1))
expect_refusal("a tensor of the host", lambda: dist.all_reduce(torch.ones(2)))

# xm and xr.
expect("xm.all_reduce", lambda: xm.all_reduce(xm.REDUCE_SUM, ones()), [3.0] * 4)
expect("xm.all_gather", lambda: xm.all_gather(ones()).sum(), 12.0)
# However a group is listed, its order is that of the ranks (with pin_layout torch_xla has its own).
turned = [[1, 0]]
expect(
    "xm.all_gather of [[1, 0]]", lambda: xm.all_gather(ones(1), groups=turned, pin_layout=False), [1.0, 2.0]
)
expect(
    "xm.reduce_scatter of [[1, 0]]",
    lambda: xm.reduce_scatter(xm.REDUCE_SUM, torch.arange(2.0).to(device), 1.0, 0, 2, groups=turned),
    [2.0 * rank],
)
expect("xm.reduce_scatter", lambda: xm.reduce_scatter(xm.REDUCE_SUM, ones(), 1.0, 0, 2), [3.0] * 2)
expect("xm.all_to_all", lambda: xm.all_to_all(ones(2), 0, 0, 2), [1.0, 2.0])
expect("xm.collective_permute", lambda: xm.collective_permute(ones(1), [[0, 1], [1, 0]]), [2.0 - rank])
expect(
    "xm.collective_broadcast",
    lambda: into(ones(), lambda o: xm.collective_broadcast([o], root_ordinal=1)),
    [2.0] * 4,
)
expect("xm.send/recv", lambda: xm.send(ones(), 3) if rank == 0 else xm.recv(ones(), 3), [1.0] * 4)
expect("xm.mesh_reduce", lambda: xm.mesh_reduce("sum", rank + 1, sum), 3)
expect("xm.rendezvous", lambda: xm.rendezvous("here", f"{rank}".encode()), [b"0", b"1"])
expect(
    "xm.all_gather_bucketized",
    lambda: [part.sum().item() for part in xm.all_gather_bucketized([ones(), ones(2)], bucket_cap_mb=1)],
    [12.0, 6.0],
)
expect(
    "xm.reduce_scatter_bucketized",
    lambda: [
        part[0].item()
        for part in xm.reduce_scatter_bucketized(xm.REDUCE_SUM, [ones(), ones(2)], 1.0, 0, 2, bucket_cap_mb=1)
    ],
    [3.0, 3.0],
)
expect("xm.is_master_ordinal", lambda: xm.is_master_ordinal(), rank == 0)
expect("xm.do_on_ordinals", lambda: xm.do_on_ordinals(lambda: None, ordinals=(0,)))
expect("xm.master_print", lambda: xm.master_print("printed by the master"))
expect("xm.get_local_ordinal", lambda: xm.get_local_ordinal(), rank)
expect("xm.set_rng_state", lambda: (xm.set_rng_state(7), xm.get_rng_state())[1], 7)
expect("xm.fork_rng", lambda: xm.fork_rng().__enter__())
expect(
    "xm.save",
    lambda: (xm.save({"x": ones()}, f"{folder}/x.pt"), os.path.exists(f"{folder}/x.pt"))[1],
    rank == 0,
)
expect("xm.optimization_barrier_", lambda: xm.optimization_barrier_([ones()]))
expect(
    "xm.send_cpu_data_to_device", lambda: xm.send_cpu_data_to_device([torch.ones(2)], device)[0], [1.0, 1.0]
)
expect("xm.get_stablehlo", lambda: "stablehlo" in xm.get_stablehlo([ones() * 2]), True)
expect("xm.check_view_sharing", lambda: xm.check_view_sharing([ones()]))
expect("xm.unlazy", lambda: xm.unlazy([ones() * 2]))
expect("xm.wait_device_ops", xm.wait_device_ops)
expect("xm.xla_device_kind", xm.xla_device_kind, "NC_v2")
expect("xm.get_xla_supported_devices", xm.get_xla_supported_devices, ["xla:0"])
expect("xm.xla_real_devices", lambda: xm.xla_real_devices([device]), [f"NEURON:{rank}"])
expect("xm.is_xla_tensor", lambda: xm.is_xla_tensor(ones()), True)
seen = []
expect(
    "xm.add_step_closure",
    lambda: (xm.add_step_closure(seen.append, args=(rank,)), xm.mark_step(), list(seen))[2],
    [rank],
)
layer = torch.nn.Linear(2, 1, bias=False).to(device)
expect("xm.broadcast_master_param", lambda: xm.broadcast_master_param(layer))
optimizer = syncfree.SGD(layer.parameters(), lr=0.1)
expect("layer", lambda: layer(ones(2)).sum().backward())
expect("xm.reduce_gradients", lambda: (xm.reduce_gradients(optimizer), layer.weight.grad)[1], [[1.5, 1.5]])
expect("syncfree.SGD", lambda: optimizer.step())
expect("xm.optimizer_step", lambda: xm.optimizer_step(torch.optim.AdamW(layer.parameters())))
for name in (
    "process_count",
    "process_index",
    "local_process_count",
    "global_device_count",
    "local_device_count",
    "addressable_device_count",
    "global_runtime_device_count",
    "host_index",
    "is_spmd",
    "get_master_ip",
    "is_bf16_supported",
    "global_runtime_device_attributes",
    "get_num_cached_compilation_graph",
):
    expect(f"xr.{name}", getattr(xr, name))
expect("xr.world_size", lambda: [xr.world_size(), xr.global_device_count(), xr.process_count()], [2, 2, 2])
for name in ("device_count", "devices", "real_devices", "sync"):
    expect(f"torch_xla.{name}", getattr(torch_xla, name))
expect("torch_xla.compile", lambda: torch_xla.compile(lambda x: x + 1)(ones()), [rank + 2.0] * 4)
with torch_xla.step():
    pass

# The rest.
expect(
    "pl.MpDeviceLoader",
    lambda: [
        part.sum().item()
        for part in pl.MpDeviceLoader(torch.utils.data.DataLoader(torch.ones(6), batch_size=2), device)
    ],
    [2.0] * 3,
)
expect(
    "xser",
    lambda: (xser.save({"x": ones()}, f"{folder}/y.pt", master_only=False), xser.load(f"{folder}/y.pt"))[1][
        "x"
    ],
    [rank + 1.0] * 4,
)
expect(
    "met",
    lambda: (
        (
            met.metrics_report(),
            met.short_metrics_report(),
            met.counter_names(),
            met.metric_names(),
            met.executed_fallback_ops(),
        )
        and None
    ),
)
expect("xp.Trace", lambda: xp.Trace("here").__enter__())
expect("checkpoint", lambda: checkpoint(lambda x: x * 2, ones()), [2.0 * rank + 2] * 4)
with autocast(device):
    expect("autocast", lambda: str((ones(2, 2) @ ones(2, 2)).dtype), "torch.bfloat16")
with torch.autocast("xla", dtype=torch.bfloat16):
    expect(
        "torch.autocast",
        lambda: str(torch.nn.functional.linear(ones(2, 2), ones(2, 2)).dtype),
        "torch.bfloat16",
    )
expect("test_utils", lambda: test_utils.print_training_update(device, 1, 0.5, 10.0, 9.0))
expect("RmsNorm", lambda: RmsNorm.apply(ones(2, 4), torch.ones(4, device=device), 0.0, 1)[0], [1.0] * 4)
expect("torch_neuronx.utils", torch_neuronx.utils.get_platform_target, "trn1")
expect("torch_neuronx.initialization", torch_neuronx.initialization.initialize)
expect("set_unload", lambda: torch_neuronx.xla_impl.ops.set_unload_prior_neuron_models_mode(True))
expect(
    "placement", lambda: torch_neuronx.experimental.neuron_cores_context(start_nc=0, nc_count=1).__enter__()
)
say(wrong=wrong)
