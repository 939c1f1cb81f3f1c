"""Calls names of the table on two cores, and says which came out wrong."""

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.debug.profiler as xp
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr
import torch_xla.test.test_utils as test_utils
from saying import say
from torch_xla.amp import syncfree

import torch_neuronx
from torch_neuronx.xla_impl.ops import RmsNorm

dist.init_process_group("xla")
device, rank, world = torch_xla.device(), xr.global_ordinal(), xr.world_size()
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


# Values of collectives are in collectives.py, those of training in libraries.py.
expect(
    "dist.isend/irecv",
    lambda: into(
        ones(), (lambda o: dist.isend(o, 1).wait()) if rank == 0 else (lambda o: dist.irecv(o, 0).wait())
    ),
    [1.0] * 4,
)


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


def drawn():
    xm.set_rng_state(7)
    return torch.rand(3, device=device).cpu().tolist()


expect(
    "xm.is_master_ordinal", lambda: [xm.is_master_ordinal(local) for local in (True, False)], [rank == 0] * 2
)
expect("xm.do_on_ordinals", lambda: xm.do_on_ordinals(lambda: None, ordinals=(0,)))
expect("xm.master_print", lambda: xm.master_print("printed by the master"))
expect("xm.get_local_ordinal", lambda: xm.get_local_ordinal(), rank)
expect("xm.set_rng_state", drawn, drawn())
expect("xm.get_rng_state", lambda: (xm.set_rng_state(7), xm.get_rng_state())[1], 7)
expect("xm.fork_rng", lambda: xm.fork_rng().__enter__())
expect(
    "xm.optimization_barrier_",
    lambda: into(ones(), lambda o: xm.optimization_barrier_([o])),
    [rank + 1.0] * 4,
)
expect(
    "xm.send_cpu_data_to_device", lambda: xm.send_cpu_data_to_device([torch.ones(2)], device)[0], [1.0, 1.0]
)
expect("xm.get_stablehlo", lambda: "stablehlo" in xm.get_stablehlo([ones() * 2]), True)
expect("xm.check_view_sharing", lambda: xm.check_view_sharing([ones()]))
expect("xm.unlazy", lambda: xm.unlazy([ones() * 2]))
expect("xm.wait_device_ops", xm.wait_device_ops)
expect("xm.get_xla_supported_devices", xm.get_xla_supported_devices, ["xla:0"])
expect("xm.xla_real_devices", lambda: xm.xla_real_devices([device]), [f"NEURON:{rank}"])
expect("xm.is_xla_tensor", lambda: xm.is_xla_tensor(ones()), True)
expect("xr.process_count", xr.process_count, world)
layer = torch.nn.Linear(2, 1, bias=False).to(device)
optimizer = syncfree.SGD(layer.parameters(), lr=0.1)
expect("layer", lambda: layer(ones(2)).sum().backward())
expect("syncfree.SGD", lambda: optimizer.step())
for name in (
    "local_process_count",
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
for name in ("device_count", "devices", "real_devices", "sync"):
    expect(f"torch_xla.{name}", getattr(torch_xla, name))

# The rest.
expect("met.metrics_report", lambda: "CompileTime" in met.metrics_report(), True)
for name in ("short_metrics_report", "counter_names", "metric_names", "executed_fallback_ops", "clear_all"):
    expect(f"met.{name}", getattr(met, name))
expect("xp.Trace", lambda: xp.Trace("here").__enter__())
expect("test_utils", lambda: test_utils.print_training_update(device, 1, 0.5, 10.0, 9.0))
expect("RmsNorm", lambda: RmsNorm.apply(ones(2, 4), torch.ones(4, device=device), 0.0, 1)[0], [1.0] * 4)
expect("torch_neuronx.initialization", torch_neuronx.initialization.initialize)
expect("set_unload", lambda: torch_neuronx.xla_impl.ops.set_unload_prior_neuron_models_mode(True))
expect(
    "placement", lambda: torch_neuronx.experimental.neuron_cores_context(start_nc=0, nc_count=1).__enter__()
)
say(wrong=wrong)
