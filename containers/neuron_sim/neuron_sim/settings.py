"""The simulator's settings, read from the container's environment variables.

The launcher and `hooks.activation` also read and write variables of torchrun, Python and torch_xla.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import topology
from neuron_sim.errors import NeuronSimError

DEFAULT_INSTANCE_TYPE = "ml.trn1.2xlarge"
DEFAULT_FRAMEWORK_VERSION = "2.9"
TRIAL_CACHES = "NEURON_SIM_TRIAL_CACHES"
"""Set by `neuron_parallel_compile` for the script that it runs."""
WITHOUT_FUNCTIONALIZATION = "XLA_DISABLE_FUNCTIONALIZATION"
OLDER_TRANSFORMERS = "NEURON_SIM_OLDER_TRANSFORMERS"
"""Set where a newer transformers stands in for the one that requirements.txt asks for: see `older_transformers`."""


@dataclass(frozen=True)
class Settings:
    """The simulated instance, the folders for what is recorded, and limits."""

    instance_type: str
    local_cores: int | None
    framework_version: tuple[int, int]
    counters_dir: Path | None
    cores_dir: Path
    """The folder that records which process of this host holds which core."""
    tensorboard_dir: Path | None
    host: str
    shared_memory_mib: int
    collective_timeout_s: float
    rehearsed_steps: int | None
    """In a short rehearsal: how many batches the first pass over a loader has; None: all of them."""

    @property
    def instance(self) -> topology.Instance:
        """The simulated instance."""
        return topology.instance(self.instance_type)

    @property
    def cores(self) -> int:
        """The number of cores with which this host rehearses."""
        return self.local_cores or self.instance.cores

    def workers(self, asked: str) -> str:
        """torchrun's ``--nproc_per_node``: a request for all cores of the instance gets all that are rehearsed.

        AWS's toolkit asks neuron-ls how many there are, but takes 64 for trn2.48xlarge without asking
        (sagemaker-training 5.1.4, `environment.num_neurons`).
        """
        return str(self.cores) if asked == str(self.instance.cores) else asked


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    Raises:
        NeuronSimError: a variable has a value that it cannot have.
    """
    counters = environment.get("WINDTUNNEL_COUNTERS_DIR", "")
    tensorboard = environment.get("WINDTUNNEL_TENSORBOARD_DIR", "")
    instance_type = environment.get("WINDTUNNEL_INSTANCE_TYPE") or DEFAULT_INSTANCE_TYPE
    _check_logical_cores(environment, instance_type)
    return Settings(
        instance_type=instance_type,
        local_cores=_positive(environment, "WINDTUNNEL_LOCAL_CORES"),
        framework_version=_framework_version(environment),
        counters_dir=Path(counters) if counters else None,
        cores_dir=_cores_dir(environment),
        tensorboard_dir=Path(tensorboard) if tensorboard else None,
        host=environment.get("SM_CURRENT_HOST") or os.uname().nodename,
        shared_memory_mib=_positive(environment, "WINDTUNNEL_SHARED_MEMORY_MIB") or 64,
        rehearsed_steps=_positive(environment, "WINDTUNNEL_REHEARSE_STEPS"),
        collective_timeout_s=float(_positive(environment, "WINDTUNNEL_COLLECTIVE_TIMEOUT_SECONDS") or 1800),
    )


@dataclass(frozen=True)
class Identity:
    """Which core of which host this process is."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int

    @property
    def local_ranks(self) -> range:
        """Global ranks of the cores of this host (torchrun numbers hosts in blocks)."""
        first = self.rank - self.local_rank
        return range(first, first + self.local_world_size)


def identity(environment: Mapping[str, str] = os.environ) -> Identity:
    """The ranks of this process, as set by torchrun, or by `xmp.spawn` through torch_xla's Neuron variables."""
    if "TORCHELASTIC_RUN_ID" in environment:
        return Identity(
            int(environment["RANK"]),
            int(environment["WORLD_SIZE"]),
            int(environment["LOCAL_RANK"]),
            int(environment["LOCAL_WORLD_SIZE"]),
        )
    processes = environment.get("NEURON_PJRT_PROCESSES_NUM_DEVICES")
    if processes and "NEURON_PJRT_PROCESS_INDEX" in environment:
        count = len(processes.split(","))
        index = int(environment["NEURON_PJRT_PROCESS_INDEX"])
        return Identity(index, count, index, count)
    return Identity(0, 1, 0, 1)


def says_of_others(environment: Mapping[str, str] = os.environ) -> str:
    """``WORLD_SIZE=2`` if a launcher has told torch, but not torch_xla, that there are other workers; else empty."""
    size = environment.get("WORLD_SIZE", "")
    alone = identity(environment).world_size == 1
    return f"WORLD_SIZE={size}" if alone and size.isdigit() and int(size) > 1 else ""


@dataclass(frozen=True)
class StochasticRounding:
    """What the variables NEURON_RT_STOCHASTIC_ROUNDING_* and XLA's of bf16 ask for."""

    enabled: bool
    seed: int
    bf16_by_environment: bool


def stochastic_rounding(environment: Mapping[str, str] = os.environ) -> StochasticRounding:
    """Read these variables. Call when the device is first used: scripts set them themselves.

    Raises:
        NeuronSimError: a variable has a value that it cannot have.
    """
    bf16 = any(environment.get(name, "0") not in ("", "0") for name in ("XLA_USE_BF16", "XLA_DOWNCAST_BF16"))
    name = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
    asked = environment.get(name, "").strip().lower()
    if asked not in ("", "0", "1", "false", "true"):
        raise NeuronSimError(f"{name}={asked!r} is not a switch. Set it to 1 or 0, or unset it.")
    name = "NEURON_RT_STOCHASTIC_ROUNDING_SEED"
    seed = environment.get(name, "").strip() or "0"
    if not seed.isdigit() or int(seed) >= 2**32:
        raise NeuronSimError(f"{name}={seed!r} is not a whole number from 0 to 4294967295. Unset it for 0.")
    return StochasticRounding(asked in ("1", "true"), int(seed), bf16)


@dataclass(frozen=True)
class CoreWish:
    """Which cores a process asks for: the values of its variables, empty where they are not set."""

    visible_cores: str
    num_cores: str


def core_wish(environment: Mapping[str, str] = os.environ) -> CoreWish:
    """Read NEURON_RT_VISIBLE_CORES and NEURON_RT_NUM_CORES. Call late: torchrun's ranks and `xmp.spawn` set them."""
    return CoreWish(
        environment.get("NEURON_RT_VISIBLE_CORES", "").strip(),
        environment.get("NEURON_RT_NUM_CORES", "").strip(),
    )


@dataclass(frozen=True)
class CompilerWish:
    """What a process asks of the Neuron compiler and its cache: the values of its variables."""

    flags: str
    cache_url: str
    extract_graphs_only: bool
    default_cache: Path
    s3_folder: Path | None
    """Where the backend has put copies of s3:// caches, one subfolder per bucket."""
    instance_type: str
    framework_version: tuple[int, int]
    """PyTorch's version, which decides the Neuron release of the compiler."""
    trial_caches: Path | None = None
    """In a trial run of `neuron_parallel_compile`: where the script's processes record which caches they have used."""
    max_retries: int = 0
    ignore_script_error: bool = False


def compiler_wish(environment: Mapping[str, str] = os.environ) -> CompilerWish:
    """Read NEURON_CC_FLAGS and the variables of the compile cache. Call late: scripts set them themselves."""
    s3_folder = environment.get("WINDTUNNEL_S3_CACHE_DIR", "")
    trial_caches = environment.get(TRIAL_CACHES, "")
    retries = environment.get("NEURON_PARALLEL_COMPILE_MAX_RETRIES", "").strip()
    return CompilerWish(
        flags=environment.get("NEURON_CC_FLAGS", ""),
        cache_url=environment.get("NEURON_COMPILE_CACHE_URL", "").strip(),
        extract_graphs_only=environment.get("NEURON_EXTRACT_GRAPHS_ONLY", "") == "1",
        default_cache=Path(
            environment.get("WINDTUNNEL_COMPILE_CACHE_DIR") or "/var/tmp/neuron-compile-cache"
        ),
        s3_folder=Path(s3_folder) if s3_folder else None,
        instance_type=environment.get("WINDTUNNEL_INSTANCE_TYPE") or DEFAULT_INSTANCE_TYPE,
        framework_version=_framework_version(environment),
        trial_caches=Path(trial_caches) if trial_caches else None,
        max_retries=int(retries) if retries.isdigit() else 0,
        ignore_script_error=environment.get("NEURON_IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE", "") == "1",
    )


@dataclass(frozen=True)
class Serving:
    """SageMaker's variables in the container of an endpoint. AWS's toolkit itself reads which file has the handlers
    (SAGEMAKER_PROGRAM) and the default content type of answers (SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT).
    """

    port: int
    workers: int
    timeout_s: int
    """Seconds that the handlers may take for one request."""
    model_dir: Path
    code_dir: Path
    log_level: int

    def worker_environment(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The environment for a process that imports the handlers."""
        path = os.pathsep.join(filter(None, [str(self.code_dir), environment.get("PYTHONPATH")]))
        return {**environment, "SM_MODEL_DIR": str(self.model_dir), "PYTHONPATH": path}


def serving(environment: Mapping[str, str] = os.environ) -> Serving:
    """Read SageMaker's variables of an endpoint.

    Raises:
        NeuronSimError: a variable has a value that it cannot have.
    """
    model_dir = Path(environment.get("SM_MODEL_DIR") or "/opt/ml/model")
    # On SageMaker it may be an S3 address; the model's archive already has that code in its folder `code`.
    submitted = Path(environment.get("SAGEMAKER_SUBMIT_DIRECTORY") or model_dir / "code")
    return Serving(
        port=_positive(environment, "SAGEMAKER_BIND_TO_PORT") or 8080,
        workers=_positive(environment, "SAGEMAKER_MODEL_SERVER_WORKERS") or 1,
        timeout_s=_positive(environment, "SAGEMAKER_MODEL_SERVER_TIMEOUT") or 60,
        model_dir=model_dir,
        code_dir=submitted if submitted.is_dir() else model_dir / "code",
        log_level=_positive(environment, "SAGEMAKER_CONTAINER_LOG_LEVEL") or 20,
    )


def strict_requirements(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the job fails if requirements.txt cannot be installed unchanged."""
    return environment.get("WINDTUNNEL_STRICT_REQUIREMENTS", "") not in ("", "0")


def older_transformers(environment: Mapping[str, str] = os.environ) -> str:
    """The requirement for an older transformers, which makes no process group itself, if a newer one stands in for it:
    ``transformers==4.21.0``; else empty.
    """
    return environment.get(OLDER_TRANSFORMERS, "")


def waits_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder in which processes of this host note that they have been waiting for long."""
    return _own_dir(environment) / "waits"


def forward_sigterm(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether SIGTERM is passed on to the script, which AWS's toolkit does not do."""
    return environment.get("WINDTUNNEL_FORWARD_SIGTERM", "") not in ("", "0")


def simulate_auto_cast(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether products round as NEURON_CC_FLAGS' --auto-cast says. Call late: scripts set the variable themselves."""
    return environment.get("WINDTUNNEL_SIMULATE_AUTO_CAST", "") not in ("", "0")


def eager_debug_mode(environment: Mapping[str, str] = os.environ) -> str:
    """The variable, AWS's or torch_xla's, that turns eager debug mode on; empty if none does. Call late."""
    names = ("NEURON_USE_EAGER_DEBUG_MODE", "XLA_USE_EAGER_DEBUG_MODE")
    return next((name for name in names if environment.get(name) == "1"), "")


def uses_spmd(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether XLA_USE_SPMD asks for one process that drives all cores; as torch_xla reads it. Call late."""
    asked = environment.get("XLA_USE_SPMD", "")
    try:
        return asked == "true" or int(asked) != 0
    except ValueError:
        return False


def process_tag(environment: Mapping[str, str] = os.environ) -> str:
    """The name of this process in the Neuron tools: NEURON_PROCESS_TAG, else its process id."""
    return environment.get("NEURON_PROCESS_TAG") or str(os.getpid())


def _own_dir(environment: Mapping[str, str]) -> Path:
    """The job's own folder, so that jobs of the `process` runner share nothing; without a job, the user's folder."""
    counters = environment.get("WINDTUNNEL_COUNTERS_DIR", "")
    if counters:
        return Path(counters)
    return Path(environment.get("TMPDIR") or "/tmp") / f"neuron_sim-{os.getuid()}"


def _cores_dir(environment: Mapping[str, str]) -> Path:
    """Where cores are recorded: a folder per torchrun, as several of one launch on one machine play several hosts."""
    several = environment.get("GROUP_WORLD_SIZE", "1") not in ("1", "1.0")  # the latter is Ray Train's
    return _own_dir(environment) / (f"cores-{environment.get('GROUP_RANK', '0')}" if several else "cores")


def _check_logical_cores(environment: Mapping[str, str], instance_type: str) -> None:
    name = "NEURON_LOGICAL_NC_CONFIG"
    asked = environment.get(name, "").strip()
    if asked and asked != str(topology.instance(instance_type).logical_core_config):
        simulated = topology.instance(instance_type).logical_core_config
        raise NeuronSimError(
            f"{name}={asked!r} is not simulated: a logical core of {instance_type} is {simulated} physical here. "
            f"Unset it, or set it to {simulated}."
        )


def _positive(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "").strip()
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise NeuronSimError(
            f"{name}={text!r} is not a positive whole number. Unset it, or set it to 1 or more."
        )
    return int(text)


def xla_flags(environment: Mapping[str, str] = os.environ) -> str:
    """Options of XLA: the script's, and those that torchrun has chosen."""
    return environment.get("XLA_FLAGS", "")


def leaves_functionalization_out(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether torch_xla on trn1 would trace the job without PyTorch's functionalization.

    torch-neuronx does so by default since torch 2.1: AWS Neuron documentation, "PyTorch NeuronX
    Environment Variables".
    """
    asked = environment.get(WITHOUT_FUNCTIONALIZATION, "1").lower() in ("1", "true")
    return asked and _framework_version(environment) >= (2, 1)


def _framework_version(environment: Mapping[str, str]) -> tuple[int, int]:
    text = environment.get("WINDTUNNEL_FRAMEWORK_VERSION") or DEFAULT_FRAMEWORK_VERSION
    parts = text.split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        raise NeuronSimError(f"WINDTUNNEL_FRAMEWORK_VERSION={text!r} is not a version such as 2.8 or 2.8.0.")
    return int(parts[0]), int(parts[1])
