"""Names of torch_xla. Versions: the public names of its modules at the tags v1.13.0 to v2.9.0 of its repository."""

from __future__ import annotations

from neuron_sim.names.name import Name, group

_XM, _XR, _XLA = "torch_xla.core.xla_model", "torch_xla.runtime", "torch_xla"
_PROFILER, _METRICS = "torch_xla.debug.profiler", "torch_xla.debug.metrics"
_TEST_UTILS, _EXPERIMENTAL = "torch_xla.test.test_utils", "torch_xla.experimental"
_KERNELS = f"{_EXPERIMENTAL}.custom_kernel"
_SPMD = "torch_xla.distributed.spmd"
_FSDP = "torch_xla.distributed.fsdp"

ONE_PROCESS_A_CORE = "AWS does not support SPMD on Neuron. Use one process a core, started by torchrun."
_NKI = (
    "On Trainium kernels are written in NKI, not simulated either. Rehearse with PyTorch's own operations (for "
    "attention torch.nn.functional.scaled_dot_product_attention); on trn1 an NKI kernel may take their place."
)
PALLAS = f"Pallas kernels are for TPUs. {_NKI}"
CUSTOM_CALL = f"It names code that only a device has. {_NKI}"

NAMES: list[Name] = [
    *group(_XLA, "device device_count devices real_devices", (2, 3)),
    *group(_XLA, "step sync", (2, 4)),
    *group(_XLA, "compile launch manual_seed", (2, 5)),
    *group(
        _XM,
        "REDUCE_AND REDUCE_MAX REDUCE_MIN REDUCE_MUL REDUCE_OR REDUCE_SUM RateTracker add_step_closure all_gather "
        "all_reduce all_to_all check_view_sharing collective_broadcast collective_permute do_on_ordinals "
        "get_local_ordinal get_rng_state get_xla_supported_devices is_master_ordinal is_xla_tensor mark_step "
        "master_print mesh_reduce optimization_barrier_ optimizer_step reduce_gradients reduce_scatter "
        "rendezvous save send_cpu_data_to_device set_replication set_rng_state unlazy wait_device_ops "
        "xla_device xla_device_hw xla_real_devices xla_replication_devices",
    ),
    *group(_XM, "recv send", note="between the cores of one instance"),
    *group(_XM, "get_memory_info", note="of the simulated core: what its tensors hold, and what there is"),
    *group(_XM, "broadcast_master_param xla_rendezvous get_stablehlo get_stablehlo_bytecode", (2, 1)),
    *group(_XM, "CoalescingBuckets all_gather_bucketized fork_rng reduce_scatter_bucketized", (2, 3)),
    *group(_XM, "all_reduce_bucketized_gradients", (2, 5)),
    *group(_XM, "xla_device_kind", (2, 6)),
    *group(_XM, "get_ordinal", until=(2, 6), note="then xr.global_ordinal"),
    *group(_XM, "xrt_world_size", until=(2, 6), note="then xr.world_size"),
    *group(_XM, "parse_xla_device", until=(2, 6)),
    *group(
        _XR,
        "addressable_device_count addressable_runtime_device_count device_type global_device_count global_ordinal "
        "global_runtime_device_attributes global_runtime_device_count host_index is_spmd local_device_count "
        "local_ordinal local_process_count process_count process_index runtime_device_attributes set_device_type "
        "world_size",
        (2, 1),
    ),
    *group(_XR, "use_spmd", (2, 1), refused=ONE_PROCESS_A_CORE),
    *group(_XR, "get_master_ip is_bf16_supported", (2, 2)),
    *group(
        _XR,
        "initialize_cache",
        (2, 2),
        note="XLA's CPU compiler writes the cache and cannot read it back",
    ),
    *group(_XR, "get_num_cached_compilation_graph", (2, 7)),
    *group(_XR, "using_pjrt requires_pjrt", (2, 1), (2, 4), note="PJRT is the only runtime"),
    *group(_XR, "xla_device", (2, 1), (2, 7), note="then torch_xla.device"),
    *group("torch_xla.distributed.xla_multiprocessing", "MpModelWrapper MpSerialExecutor spawn"),
    *group(
        "torch_xla.distributed.parallel_loader",
        "MpDeviceLoader ParallelLoader PerDeviceLoader PerDeviceQueue",
    ),
    *group("torch_xla.utils.serialization", "TensorReference load save"),
    *group("torch_xla.utils.checkpoint", "CheckpointFunction checkpoint"),
    *group("torch_xla.distributed.zero_redundancy_optimizer", "ZeroRedundancyOptimizer", (2, 1)),
    *group(
        _FSDP,
        "XlaFullyShardedDataParallel checkpoint_module consolidate_sharded_model_checkpoints "
        "consolidate_sharded_state_dicts",
    ),
    *group("torch_xla.distributed.xla_backend", "ProcessGroupXla"),
    *group("torch_xla.amp", "autocast"),
    *group("torch_xla.amp.syncfree", "Adam AdamW SGD"),
    *group(
        "torch_xla.core.functions", "AllGather AllReduce SyncBatchNorm all_gather all_reduce distributed_mm"
    ),
    *group(_METRICS, "counter_names counter_value metric_data metric_names metrics_report"),
    *group(_METRICS, "clear_all clear_counters clear_metrics short_metrics_report", (2, 1)),
    *group(_METRICS, "executed_fallback_ops", (2, 4)),
    *group(_PROFILER, "StepTrace Trace start_server trace", note="of XLA's CPU client"),
    *group(_PROFILER, "trace_detached", (2, 2), note="of XLA's CPU client"),
    *group(_PROFILER, "start_trace stop_trace", (2, 7), note="of XLA's CPU client"),
    *group(
        _TEST_UTILS,
        "close_summary_writer get_summary_writer mp_test now print_test_update print_training_update "
        "write_to_summary",
    ),
    *group(_EXPERIMENTAL, "eager_mode eager_mode_context is_eager_mode", (2, 4)),
    *group(_EXPERIMENTAL, "compile", (2, 4), (2, 6), note="then torch_xla.compile"),
    *group(_KERNELS, "flash_attention make_kernel_from_pallas", (2, 3), refused=PALLAS),
    *group(_KERNELS, "gmm paged_attention tgmm trace_pallas", (2, 4), refused=PALLAS),
    *group(f"{_EXPERIMENTAL}.splash_attention", "splash_attention", (2, 8), refused=PALLAS),
    *group(f"{_EXPERIMENTAL}.stablehlo_custom_call", "stablehlo_custom_call", (2, 4), refused=CUSTOM_CALL),
    *group(
        _SPMD,
        "HybridMesh Mesh clear_sharding mark_sharding xla_distribute_module xla_distribute_tensor",
        (2, 2),
        refused=ONE_PROCESS_A_CORE,
    ),
    *group(_SPMD, "set_global_mesh", (2, 3), refused=ONE_PROCESS_A_CORE),
    *group(_SPMD, "enable_manual_sharding disable_manual_sharding", (2, 4), refused=ONE_PROCESS_A_CORE),
]
