"""What a job runs on (the type and number of instances), and with which batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..errors import InvalidInput, quoted
from ..instances import InstanceType
from ..model.precision import Precision, is_fp32_on_neuron
from .counters import MOST_INSTANCES
from .full_scale import LARGEST, is_whole


@dataclass(frozen=True)
class PerDevice:
    """A batch rule: ``samples`` of one step on each worker, or on each copy of a model that is split over workers.

    Raises:
        InvalidInput: no whole number of 1 or more.
    """

    samples: int

    def __post_init__(self) -> None:
        """Check the number."""
        _whole(self.samples, "a batch a device")

    def __str__(self) -> str:
        """The rule as text: ``32 a device``."""
        return f"{self.samples:,} a device"


BatchRule = Literal["rehearsed", "global", "per_device"] | int | PerDevice
"""Which global batch an instance gets. The other instances of a comparison do not matter.

The job's own global batch is the one in its description, or that of a rehearsed worker times all workers of the
instances that the job asked for.

``rehearsed``: Neuron instances keep the samples of each worker. Other instances get the global batch of the same number
    of instances of the job's own type, or the rehearsed samples on each of their workers, whichever is more.
``global``: every instance gets the job's own global batch.
``per_device``: every instance gets the same samples on each worker.
A number: every instance gets this global batch. `PerDevice`: every worker gets this number of samples.
"""
BATCH_RULES = ("rehearsed", "global", "per_device")


def checked_rule(given: Any) -> BatchRule:
    """Check a rule that was given as an argument, and return it.

    Raises:
        InvalidInput: it is no batch rule.
    """
    if isinstance(given, PerDevice) or (isinstance(given, str) and given in BATCH_RULES):
        return given  # type: ignore[return-value]  # one of the names
    if isinstance(given, str) or not isinstance(given, int | float):
        raise InvalidInput(
            f"batch must be one of {', '.join(BATCH_RULES)}, a global batch as 256, or PerDevice(32), not {given!r}"
        )
    return _whole(given, "batch")


def stated_batch(rule: BatchRule, copies: int) -> float | None:
    """The global batch of a rule that is a number or `PerDevice`; None for others. ``copies``: see `PerDevice`."""
    if isinstance(rule, PerDevice):
        return float(rule.samples * copies)
    return None if isinstance(rule, str) else float(rule)


def _whole(value: Any, what: str) -> int:
    if not is_whole(value):
        raise InvalidInput(
            f"{what} must be a whole number of samples from 1 to {LARGEST:g}, not {quoted(value)}"
        )
    return int(value)


def no_cluster(instance: InstanceType) -> str:
    """The message that several of these instances cannot train one model together."""
    return (
        f"{instance.name} has no EFA, over which {instance.core_name}s of several instances meet: on AWS only one "
        "trains a model."
    )


@dataclass(frozen=True)
class Cluster:
    """``count`` instances of one type, all their cores at work.

    Raises:
        InvalidInput: ``count`` is no whole number from 1 to `MOST_INSTANCES`.
    """

    instance: InstanceType
    count: int

    def __post_init__(self) -> None:
        """Check the count."""
        if isinstance(self.count, bool) or not isinstance(self.count, int | float):
            raise InvalidInput(f"a job has a whole number of instances, as 4, not {quoted(self.count)}")
        if not self.count >= 1:
            raise InvalidInput(f"a job has at least 1 instance, not {self.count}")
        if self.count > MOST_INSTANCES:
            raise InvalidInput(f"a job has at most {MOST_INSTANCES:,} instances, not more")
        if self.count != int(self.count):
            raise InvalidInput(f"a job has a whole number of instances, not {self.count}")

    @property
    def workers(self) -> int:
        """Number of NeuronCores or GPUs over all instances."""
        return self.instance.core_count * self.count

    def __str__(self) -> str:
        """The cluster as text: ``2 x ml.trn1.32xlarge``."""
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
