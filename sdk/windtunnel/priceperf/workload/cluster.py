"""On what a job runs: instances, how many, with which batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..errors import InvalidInput, quoted
from ..instances import InstanceType
from ..model.precision import Precision, is_fp32_on_neuron
from .counters import MOST_INSTANCES
from .full_scale import LARGEST


@dataclass(frozen=True)
class PerDevice:
    """So many samples of one step on each worker; of a model that is split, on each copy of it.

    Raises:
        InvalidInput: no whole number of 1 or more.
    """

    samples: int

    def __post_init__(self) -> None:
        """Check the number."""
        _whole(self.samples, "a batch a device")

    def __str__(self) -> str:
        """``32 a device``."""
        return f"{self.samples:,} a device"


BatchRule = Literal["rehearsed", "global", "per_device"] | int | PerDevice
"""Which batch an instance gets. It follows from the job and the instance alone, never from what stands beside it.

The job's own global batch is that of the instance it asked for, with all its cores, or what its description states.

``rehearsed``: Neuron instances keep the samples a worker. Others get the global batch of as many instances of the
    job's own type, or the samples a worker on each of theirs if that is more.
``global``: all get the job's own global batch.
``per_device``: all get the same samples on each worker.
A number: all get this global batch. `PerDevice`: all get so many on each worker.
"""
BATCH_RULES = ("rehearsed", "global", "per_device")


def checked_rule(given: Any) -> BatchRule:
    """A rule that was given as an argument.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(given, PerDevice) or (isinstance(given, str) and given in BATCH_RULES):
        return given  # type: ignore[return-value]  # one of the names
    if isinstance(given, str) or not isinstance(given, int | float):
        raise InvalidInput(
            f"batch must be one of {', '.join(BATCH_RULES)}, a global batch as 256, or PerDevice(32), not {given!r}"
        )
    return _whole(given, "batch")


def stated_batch(rule: BatchRule, copies: int) -> float | None:
    """The global batch that a rule states in numbers, for so many workers or copies of a model; None: it does not."""
    if isinstance(rule, PerDevice):
        return float(rule.samples * copies)
    return None if isinstance(rule, str) else float(rule)


def _whole(value: Any, what: str) -> int:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 1 <= value <= LARGEST and value == int(value)):
        raise InvalidInput(
            f"{what} must be a whole number of samples from 1 to {LARGEST:g}, not {quoted(value)}"
        )
    return int(value)


def no_cluster(instance: InstanceType) -> str:
    """Why several instances that train alone are no cluster."""
    return (
        f"{instance.name} has no EFA, over which {instance.core_name}s of several instances meet: on AWS only one "
        "trains a model."
    )


@dataclass(frozen=True)
class Cluster:
    """``count`` instances of one type, all their cores at work.

    Raises:
        InvalidInput: no instance.
    """

    instance: InstanceType
    count: int

    def __post_init__(self) -> None:
        """A job has an instance."""
        if not self.count >= 1:
            raise InvalidInput(f"a job has at least 1 instance, not {self.count}")
        if self.count > MOST_INSTANCES:
            raise InvalidInput(f"a job has at most {MOST_INSTANCES:,} instances, not more")
        if self.count != int(self.count):
            raise InvalidInput(f"a job has a whole number of instances, not {self.count}")

    @property
    def workers(self) -> int:
        """NeuronCores or GPUs over all instances."""
        return self.instance.core_count * self.count

    def __str__(self) -> str:
        """``2 x ml.trn1.32xlarge``."""
        return f"{self.count} x {self.instance.name}"


class Run(NamedTuple):
    """One way to run a job. ``batch``: samples of one optimizer step over all workers."""

    cluster: Cluster
    batch: float
    precision: Precision

    @property
    def instance(self) -> InstanceType:
        """The type of the cluster's instances."""
        return self.cluster.instance

    @property
    def fp32_on_neuron(self) -> bool:
        """See `is_fp32_on_neuron`."""
        return is_fp32_on_neuron(self.instance, self.precision)

    @property
    def samples_per_worker(self) -> float:
        """Samples of one optimizer step on each worker, on average."""
        return self.batch / self.cluster.workers
