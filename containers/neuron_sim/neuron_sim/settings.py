"""What the container tells the simulator: the only reader of the environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from neuron_sim import topology
from neuron_sim.errors import NeuronSimError

DEFAULT_INSTANCE_TYPE = "ml.trn1.2xlarge"
DEFAULT_FRAMEWORK_VERSION = "2.9"


@dataclass(frozen=True)
class Settings:
    """The simulated instance, and where counters go."""

    instance_type: str
    local_cores: int | None
    framework_version: tuple[int, int]
    counters_dir: Path | None
    host: str
    shared_memory_mib: int
    collective_timeout_s: float

    @property
    def instance(self) -> topology.Instance:
        """The simulated instance."""
        return topology.instance(self.instance_type)

    @property
    def cores(self) -> int:
        """Cores that this host rehearses with."""
        return self.local_cores or self.instance.cores


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings.

    Raises:
        NeuronSimError: a value is not what its name asks for.
    """
    counters = environment.get("WINDTUNNEL_COUNTERS_DIR", "")
    return Settings(
        instance_type=environment.get("WINDTUNNEL_INSTANCE_TYPE") or DEFAULT_INSTANCE_TYPE,
        local_cores=_positive(environment, "WINDTUNNEL_LOCAL_CORES"),
        framework_version=_version(
            environment.get("WINDTUNNEL_FRAMEWORK_VERSION") or DEFAULT_FRAMEWORK_VERSION
        ),
        counters_dir=Path(counters) if counters else None,
        host=environment.get("SM_CURRENT_HOST") or socket.gethostname(),
        shared_memory_mib=_positive(environment, "WINDTUNNEL_SHARED_MEMORY_MIB") or 64,
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
    """Who this process is: set by torchrun, or by `xmp.spawn` through torch_xla's Neuron variables."""
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


def _positive(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "").strip()
    if not text:
        return None
    if not text.isdigit() or int(text) < 1:
        raise NeuronSimError(
            f"{name}={text!r} is not a positive whole number. Unset it, or set it to 1 or more."
        )
    return int(text)


def _version(text: str) -> tuple[int, int]:
    parts = text.split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        raise NeuronSimError(f"WINDTUNNEL_FRAMEWORK_VERSION={text!r} is not a version such as 2.8 or 2.8.0.")
    return int(parts[0]), int(parts[1])
