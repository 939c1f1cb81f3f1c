"""Names of torch_neuronx and libneuronxla. Their versions are not torch_xla's; most have none in the documentation."""

from __future__ import annotations

from neuron_sim.names.name import Name, group

_NEURONX = "torch_neuronx"
_EXPERIMENTAL = "torch_neuronx.experimental"
_IMPL = "torch_neuronx.xla_impl"
_CACHE = "libneuronxla.neuron_cc_cache"

ONE_SHAPE = "Trace once for each shape with torch_neuronx.trace."
PARTS = "Trace the parts that the device supports one by one."
NKI = "A kernel written in NKI runs on the device only: keep a PyTorch version of it for rehearsals."
GPSIMD = (
    "C++ operators run on the host, with standard tensor accessors; their time on the device is not modelled"
)
HLO = "Write what it computes with PyTorch's operations: XLA lowers those."
AS_A_WHOLE = "torch_neuronx.trace lowers and checks a function as a whole."
PROFILE = "warned of: it writes no profile, for there is no device; a job's report has the counters"

NAMES: list[Name] = [
    *group(_NEURONX, "trace", None, note="lowered by XLA, computed by PyTorch on the CPU"),
    *group(_NEURONX, "DataParallel dynamic_batch replace_weights", None),
    *group(
        _NEURONX,
        "async_load lazy_load move_trace_to_device set_neuron_cores set_multicore neuron_cores_context "
        "multicore_context",
        None,
        note="checked and remembered: the cores of a host are its CPUs",
    ),
    *group(
        _NEURONX, "analyze", None, refused="torch_neuronx.trace names the operations that XLA cannot lower."
    ),
    *group(_NEURONX, "BucketModelConfig bucket_model_trace", None, refused=ONE_SHAPE),
    *group(_NEURONX, "PartitionerConfig", None, refused=PARTS),
    *group(
        _EXPERIMENTAL,
        "set_neuron_cores set_multicore neuron_cores_context multicore_context",
        None,
        note="the older place of these names",
    ),
    *group(f"{_EXPERIMENTAL}.profiler", "profile", None, note=PROFILE),
    *group("torch_neuronx.utils", "get_platform_target", None),
    *group("torch_neuronx.initialization", "initialize", None),
    *group("torch_neuronx.xla", "init", None),
    *group("torch_neuronx.parallel_compile.neuron_parallel_compile", "LOGGER main", None),
    *group(f"{_IMPL}.ops", "Argmax RmsNorm Softmax TopK", None),
    *group(
        f"{_IMPL}.ops",
        "set_unload_prior_neuron_models_mode",
        None,
        note="a wish on device memory: changes no result, and has nothing to act on here",
    ),
    *group(f"{_IMPL}.ops", "SimpleCrossEntropyLoss", None, refused="Use torch.nn.CrossEntropyLoss."),
    *group(f"{_IMPL}.ops", "nki_jit", None, note=f"decorates; a kernel that is launched is refused. {NKI}"),
    *group(
        f"{_IMPL}.ops", "xla_hlo_call", None, note=f"decorates; a function that is called is refused. {HLO}"
    ),
    *group(f"{_IMPL}.base", "xla_hlo_call", None, note="as in torch_neuronx.xla_impl.ops"),
    *group(
        f"{_IMPL}.custom_call_targets",
        "AwsNeuronModuleMarkerStartForward AwsNeuronModuleMarkerEndForward",
        None,
        refused=HLO,
    ),
    *group(f"{_IMPL}.custom_op", "load load_library", None, note=GPSIMD),
    *group(f"{_IMPL}.trace", "trace", None),
    *group(
        f"{_IMPL}.trace",
        "HloArtifacts NeffArtifacts generate_hlo generate_neff hlo_compile setup_compiler_dirs",
        None,
        refused=AS_A_WHOLE,
    ),
    *group("libneuronxla", "configure_environment create_compile_cache", None),
    *group(
        "libneuronxla",
        "register_hlo_snapshot_callback",
        None,
        note="kept, warned of: no snapshot is written here",
    ),
    *group("libneuronxla.libneuronpjrt_path", "libneuronpjrt_path", None),
    *group(_CACHE, "create_compile_cache", None),
    *group("libneuronxla.neuron_parallel_compile", "parallel_compile", None),
]
