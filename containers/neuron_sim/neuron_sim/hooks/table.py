"""Everything of torch and torch_xla that is replaced or listened to, by whom, in which order.

Each entry point has one line; see `hook.Hook` for what a line says. `_XLAC` is torch_xla's C++ part. torch_xla's
Python layers look its functions up at each call, so these layers stay torch_xla's own.
Not in the table, since they are not torch's: the C environment with PJRT_DEVICE (`activation`), and what a forked
worker resets in Python (`launcher.worker`).
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from dataclasses import dataclass

from neuron_sim import topology
from neuron_sim.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    collective_permute,
    operation,
    reduce_scatter,
    send_recv,
)
from neuron_sim.compiler import cache
from neuron_sim.counters import attention, batches, recorder
from neuron_sim.counters.called import called
from neuron_sim.counters.launches import counted as launching
from neuron_sim.device import (
    auto_cast,
    dynamo,
    eager,
    framework_names,
    in_place,
    lookups,
    malloc,
    memory,
    memory_by_use,
    older_transformers,
    stochastic_rounding,
    strided_views,
    transfer,
    upsampling,
    world,
)
from neuron_sim.diagnostics import fallbacks, findings, host_training, log
from neuron_sim.diagnostics.advice import SYNC, WAIT
from neuron_sim.diagnostics.host_reads import leads_to_host
from neuron_sim.diagnostics.progress import Progress
from neuron_sim.diagnostics.running_statistics import RunningStatistics
from neuron_sim.diagnostics.watch import Watch
from neuron_sim.errors import refusal
from neuron_sim.hooks import warned
from neuron_sim.hooks.hook import Hook, install
from neuron_sim.names import Version
from neuron_sim.names.torch_xla_names import CUSTOM_CALL, ONE_PROCESS_A_CORE, PALLAS
from neuron_sim.rehearsal.passes import Passes
from neuron_sim.runtime import lifetime, ray_workers, spawning
from neuron_sim.runtime.event_files import EventFile
from neuron_sim.runtime.usage import Publisher
from neuron_sim.settings import Settings


@dataclass(frozen=True)
class Parts:
    """The objects that keep state between calls of hooks."""

    recorder: recorder.Recorder
    passes: Passes
    watch: Watch
    statistics: RunningStatistics
    memory: memory.Guard
    publisher: Publisher
    event_file: EventFile


def become_core(current: Settings) -> None:
    """Make this process a core. Call once, before torch_xla has made its client.

    On a host without NeuronCores, such as a cluster's head node, a script can import torch_xla, as on AWS. It fails
    with a TopologyError when it first uses the device.
    """
    if not topology.is_simulated(current.instance_type):
        install(without_cores(), lambda: topology.instance(current.instance_type))
        return
    log.by_lines()
    warned.start()
    malloc.share()
    gc.freeze()  # `live_objects` then leaves out what exists now
    passes = Passes(current.rehearsed_steps, log.say)
    counting = recorder.start(current, lambda: passes.is_late)
    look = functools.partial(transfer.look_at, as_held=True)
    watch = Watch(current.counters_dir, passes, operation.remark, look)
    findings.note = watch.note
    statistics = RunningStatistics(current.counters_dir, look, lambda: watch.findings)
    guard = memory.Guard(current.instance)
    publisher = Publisher(current.cores_dir, guard.usage)
    event_file = EventFile(current)
    # Told of each graph and each step that is counted, in this order.
    steps = current.rehearsed_steps
    progress = (
        () if steps is None else (Progress(steps, log.say, lifetime.has_claimed, recorder.compilations),)
    )
    counting.listeners = (event_file, statistics, watch, guard, publisher, *progress)
    world.start(current)
    operation.start(current, watch.bring)
    lifetime.start(current, publisher)
    auto_cast.start(lambda: install(products(), lifetime.claim))
    stochastic_rounding.start(lambda: install(rounding(), lifetime.claim))
    parts = Parts(counting, passes, watch, statistics, guard, publisher, event_file)
    install([*table(parts), *names(current.framework_version)], lifetime.claim)


def without_cores() -> Iterator[Hook]:
    """Hooks on a host without NeuronCores: the functions by which a script first asks for a device."""
    for name in ("_xla_get_default_device", "_xla_get_devices", "_xla_real_devices", "_xla_get_all_devices"):
        yield Hook(f"_XLAC:{name}", is_device_use=True)


def table(parts: Parts) -> Iterator[Hook]:
    """All hooks of a core, except those of `products`, `rounding` and `names`."""
    yield from _steps(parts)
    yield from _training(parts)
    yield from _input(parts)
    yield from _transfers(parts)
    yield from _world()
    yield from _collectives()
    yield from _refused()
    yield from _processes(parts)


def _steps(on: Parts) -> Iterator[Hook]:
    """Functions that execute pending operations. `_xla_step_marker` is what xm.mark_step calls."""
    reads = on.watch.reads
    yield Hook(
        "_XLAC:_xla_step_marker",
        is_device_use=True,
        before=(cache.before_step, on.memory.before_sync),
        around=(reads.around_wait(SYNC, lambda keywords: keywords.get("wait", False)),),
        after=(
            on.recorder.step_ended,
            on.memory.after_sync,
            on.publisher.step_ended,
            lambda: on.watch.loaders.step_ended(on.recorder.made, on.recorder.backward_passes),
            # Last: it may end the script.
            lambda: on.passes.step_ended(trains=on.recorder.has_trained),
        ),
    )
    for name in ("_xla_sync_multi", "_xla_sync_live_tensors"):
        before, after = (on.memory.before_sync,), (on.memory.after_sync,)
        yield Hook(f"_XLAC:{name}", is_device_use=True, before=before, after=after)
    yield Hook("_XLAC:_xla_wait_device_ops", is_device_use=True, around=(reads.around_wait(WAIT),))
    yield Hook("_XLAC:_set_use_eager_mode", before=(eager.before_change,))
    yield Hook("_XLAC:_get_xla_tensors_hlo", is_device_use=True)
    # torch.compile(backend="openxla"): collectives run between its graphs.
    bridge = "torch_xla._dynamo.dynamo_bridge"
    yield Hook(f"{bridge}:UnsupportedNodesCollector.run_node", around=(dynamo.around_run_node,))
    yield Hook(f"{bridge}:partition_fx_graph_for_cpu_fallback", around=(dynamo.during("trace"),))
    yield Hook(f"{bridge}:extract_graph_helper", around=(dynamo.during("extract"),))


def _training(on: Parts) -> Iterator[Hook]:
    """Hooks of embeddings, attention, gradients and optimizers."""
    yield Hook(
        "torch.autograd:backward",
        before=(on.watch.loaders.trained,),
        around=(on.recorder.around_backward, on.watch.around_backward),
    )
    yield Hook("torch:compile", before=(called.stop,), around=(dynamo.around_compile,))
    yield Hook("aten::embedding/AutogradXLA", around=(lookups.around_embedding,))
    yield Hook("aten::scaled_dot_product_attention/AutogradXLA", around=(attention.around_attention,))
    for name, numbers in in_place.OPERATIONS.items():
        yield Hook(f"aten::{name}/Meta", around=(in_place.around_shapes(numbers),))
    yield Hook("torch.optim:Optimizer.__init__", around=(host_training.training.around_init,))
    yield Hook("torch._VF:lstm", around=(launching.around_lstm,))
    # Launches are not counted here: a GPU has a few operations for all parameters together.
    before, after = (launching.pause,), (launching.go_on,)
    yield Hook("torch_xla.core.xla_model:reduce_gradients", before=before, after=after)
    yield Hook("torch.nn.utils:clip_grad_norm_", before=before, after=after)
    yield Hook("torch.nn.utils:clip_grad_value_", before=before, after=after)
    optimizer = "torch.optim.optimizer:register_optimizer_step"
    yield Hook(
        f"{optimizer}_pre_hook",
        told=(
            launching.before_optimizer,
            stochastic_rounding.before_step,
            memory_by_use.know,
            on.watch.before_optimizer,
            on.statistics.before_step,
            on.watch.gradients.before_step,
        ),
    )
    stepped = (
        on.recorder.optimized,
        stochastic_rounding.after_step,
        on.watch.gradients.after_step,
        on.watch.optimized,
        on.watch.loaders.trained,
        on.passes.optimized,
    )
    yield Hook(f"{optimizer}_post_hook", told=(*after, *stepped))


def _input(on: Parts) -> Iterator[Hook]:
    """Hooks of loaders: torch's DataLoader, and torch_xla's loaders around it."""
    loaders = on.watch.loaders
    yield Hook("torch.utils.data:DataLoader.__init__", around=(loaders.around_init,))
    yield Hook("torch.utils.data:DataLoader.__iter__", around=(loaders.around_iter,))
    yield Hook("torch.utils.data.dataloader:_BaseDataLoaderIter.__next__", around=(loaders.around_next,))
    yield Hook(
        "torch_xla.distributed.parallel_loader:ParallelLoader.next_item",
        around=(batches.telling(on.recorder.batch, loaders.came), loaders.around_next_item),
    )


def _transfers(on: Parts) -> Iterator[Hook]:
    """Hooks of transfers: to the device, from the device, and operations that need both."""
    reads = on.watch.reads
    yield Hook(
        "torch.nn:Module.to",
        around=(
            host_training.training.around_module_to,
            on.watch.untied.around_module_to,
            on.memory.around_module_to,
            batches.sent.around_module_to,
        ),
    )
    yield Hook("torch.nn:Module.cpu", around=(host_training.training.around_module_to,))
    yield Hook(
        "torch:Tensor.to",
        around=(
            on.memory.around_tensor_to,
            batches.sent.around_tensor_to,
            reads.around('.to("cpu")', leads_to_host),
        ),
    )
    for method, written in (
        ("item", ".item()"),
        ("tolist", ".tolist()"),
        ("cpu", ".cpu()"),
        ("numpy", ".numpy()"),
        ("__bool__", "`if tensor:`"),
        ("__float__", "float(tensor)"),
        ("__int__", "int(tensor)"),
        ("__index__", "a tensor as an index"),
        ("__repr__", "print(tensor)"),
        ("__format__", "print(tensor)"),
    ):
        yield Hook(f"torch:Tensor.{method}", around=(reads.around(written),))
    yield Hook("torch_xla.core.xla_model:_run_step_closures", around=(reads.around_closures,))
    yield Hook("torch_xla.core.xla_model:rendezvous", around=(on.watch.around_rendezvous,))
    yield Hook("_XLAC:_xla_get_cpu_tensors", is_device_use=True)
    yield Hook("_XLAC:_xla_memory_info", instead=on.memory.info)
    for name in fallbacks.CALLED:
        yield Hook(name, around=(on.watch.fallbacks.around(name),))
    yield Hook("aten::split_with_sizes/AutogradXLA", around=(on.watch.splits.around_split,))
    yield Hook("aten::as_strided/AutogradXLA", around=(strided_views.around_as_strided,))
    yield Hook("aten::upsample_nearest2d_backward", instead=upsampling.nearest2d_backward)


def _world() -> Iterator[Hook]:
    """Functions that tell which cores there are, and which this one is."""
    for name, instead in (
        ("_xla_get_default_device_ordinal", lambda: world.me().rank),
        ("_xla_get_device_ordinal", lambda _: world.me().rank),
        ("_xla_get_process_index", lambda: world.me().rank),
        ("_xla_get_num_processes", lambda: world.me().world_size),
        ("_xla_num_global_devices", lambda: world.me().world_size),
        ("_xla_get_replication_devices_count", world.size_unless_alone),
        ("_xla_get_devices", world.own_device),
        ("_xla_real_devices", world.own_device),
        ("_xla_get_all_devices", world.all_devices),
        ("_xla_get_replication_devices", world.all_devices),
        ("_xla_set_replication_devices", lambda _: None),
        ("_xla_get_device_hw_type", lambda _: world.DEVICE_TYPE),
    ):
        yield Hook(f"_XLAC:{name}", is_device_use=True, instead=instead)
    yield Hook("_XLAC:_xla_device_kind", is_device_use=True, around=(world.around_device_kind,))
    # Scripts may set these variables until they first use the device. auto_cast, which rounds to nearest, goes first.
    yield Hook(
        "_XLAC:_xla_get_default_device",
        is_device_use=True,
        before=(eager.decide, auto_cast.decide, stochastic_rounding.decide),
    )
    yield Hook("_XLAC:_xla_set_default_device", is_device_use=True)
    yield Hook("torch.distributed:init_process_group", around=(older_transformers.around_init_process_group,))


def _collectives() -> Iterator[Hook]:
    """For each file of `collectives`: functions of `_XLAC`, and the kernel that gets its process group by name."""
    yield Hook("_XLAC:_xla_all_reduce", instead=all_reduce.one)
    yield Hook("_XLAC:_xla_all_reduce_inplace", instead=all_reduce.in_place)
    yield Hook("_c10d_functional::all_reduce", instead=all_reduce.functional)

    yield Hook("_XLAC:_xla_all_gather", instead=all_gather.one)
    yield Hook("_XLAC:_xla_all_gather_out", instead=all_gather.into)
    yield Hook("_XLAC:_xla_all_gather_coalesced", instead=all_gather.several)
    yield Hook("_XLAC:_xla_all_gather_coalesced_out", instead=all_gather.into)
    yield Hook("_c10d_functional::all_gather_into_tensor", instead=all_gather.functional)

    yield Hook("_XLAC:_xla_reduce_scatter", instead=reduce_scatter.one_or_several)
    yield Hook("_XLAC:_xla_reduce_scatter_out", instead=reduce_scatter.into)
    yield Hook("_XLAC:_xla_reduce_scatter_coalesced", instead=reduce_scatter.one_or_several)
    yield Hook("_XLAC:_xla_reduce_scatter_coalesced_out", instead=reduce_scatter.into)
    yield Hook("_c10d_functional::reduce_scatter_tensor", instead=reduce_scatter.functional)

    yield Hook("_XLAC:_xla_all_to_all", instead=all_to_all.one)
    yield Hook("_c10d_functional::all_to_all_single", instead=all_to_all.functional)

    yield Hook("_XLAC:_xla_collective_permute", instead=collective_permute.one)
    yield Hook("_c10d_functional::broadcast", instead=collective_permute.broadcast)

    yield Hook("_XLAC:_xla_send", instead=send_recv.send)
    yield Hook("_XLAC:_xla_recv", instead=send_recv.recv)


def _refused() -> Iterator[Hook]:
    """Functions of `_XLAC` below names that `names` refuses, for scripts that reach them another way."""
    for name, feature in (
        ("_xla_force_spmd_device", "SPMD (xr.use_spmd)"),
        ("_xla_set_auto_sharding", "auto-sharding"),
        ("_xla_mark_sharding", "xs.mark_sharding"),
        ("_xla_annotate_custom_sharding", "custom sharding"),
        ("_mark_manual_sharding", "manual sharding"),
        ("_xla_spmd_all_reduce", "SPMD all_reduce"),
        ("_xla_spmd_reduce_scatter", "SPMD reduce_scatter"),
    ):
        yield Hook(f"_XLAC:{name}", instead=refusal(feature, ONE_PROCESS_A_CORE))
    yield Hook("_XLAC:_xla_tpu_custom_call", instead=refusal("a TPU custom call", PALLAS))
    yield Hook("_XLAC:_xla_custom_call", instead=refusal("a custom call", CUSTOM_CALL))


def _processes(on: Parts) -> Iterator[Hook]:
    """Hooks of `xmp.spawn`, `torch_xla.launch`, Ray Train's workers, a process's warnings, and its end."""
    yield Hook("torch_xla._internal.pjrt:spawn", around=(spawning.around_spawn,))
    yield Hook("torch_xla._internal.pjrt:run_multiprocess", around=(spawning.around_launch,))
    yield Hook("torch_xla._internal.pjrt:_run_thread_per_device", around=(spawning.around_process,))
    yield Hook(ray_workers.ENTRY, around=(ray_workers.around_run,), is_optional=True)
    yield Hook("warnings:_showwarnmsg", around=(warned.around_show,))
    yield Hook("sys:excepthook", before=(on.recorder.failed,))
    # atexit calls the last one first. What `lifetime` registers later, at the claim, is called before all of these.
    yield Hook("atexit:register", told=(on.event_file.finish, on.recorder.end, on.memory.leave))


def products() -> Iterator[Hook]:
    """Hooks for WINDTUNNEL_SIMULATE_AUTO_CAST=1: torch_xla's kernels that multiply get rounded inputs."""
    for name, positions in auto_cast.PRODUCTS.items():
        yield Hook(f"aten::{name}", around=(auto_cast.around_product(positions),))
    backward = "aten::convolution_backward_overrideable"
    yield Hook(backward, around=(auto_cast.around_convolution_backward,))
    yield Hook("aten::einsum/AutogradXLA", around=(auto_cast.around_einsum,))


def rounding() -> Iterator[Hook]:
    """Hooks for NEURON_RT_STOCHASTIC_ROUNDING_EN=1: torch_xla's kernels that round an fp32 value to bf16."""
    for name in (
        "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "rsub.Tensor",
        "addcmul", "addcdiv", "lerp.Scalar", "lerp.Tensor",
        "sqrt", "rsqrt", "reciprocal", "pow.Tensor_Scalar",
    ):  # fmt: skip
        yield Hook(f"aten::{name}", around=(stochastic_rounding.around_arithmetic(name),))
    yield Hook("aten::_to_copy", around=(stochastic_rounding.around_cast,))
    yield Hook("aten::copy", around=(stochastic_rounding.around_copy,))


def names(framework_version: Version) -> Iterator[Hook]:
    """The entry points that `names` lists, as they are in the job's framework_version."""
    for entry, function in framework_names.refused():
        yield Hook(entry, instead=function)
    for entry, function in framework_names.old(framework_version):
        yield Hook(entry, instead=function, is_new=True)
    for entry, around in framework_names.newer(framework_version):
        yield Hook(entry, around=(around,))
