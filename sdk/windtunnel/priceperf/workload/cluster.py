"""On what a job runs: instances, how many, with which batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InvalidInput
from ..instances import InstanceType, instance_type
from ..model.precision import Precision
from .counters import MOST_INSTANCES

BatchRule = Literal["global", "per_device", "rehearsed"]
"""Which batch each instance gets.

``global``: all the same samples of one step over all workers, those of the largest Neuron instance.
``per_device``: all the same samples of one step on each worker.
``rehearsed``: Neuron instances keep the samples a worker, GPUs get the largest Neuron instance's global batch.
"""
BATCH_RULES: tuple[BatchRule, ...] = ("global", "per_device", "rehearsed")


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


@dataclass(frozen=True)
class Run:
    """One way to run a job. ``batch``: samples of one optimizer step over all workers."""

    cluster: Cluster
    batch: float
    precision: Precision

    @property
    def instance(self) -> InstanceType:
        """The type of the cluster's instances."""
        return self.cluster.instance

    @property
    def samples_per_worker(self) -> float:
        """Samples of one optimizer step on each worker, on average."""
        return self.batch / self.cluster.workers


def chosen_clusters(
    instances: Sequence[str | tuple[str, int]], count: int
) -> tuple[tuple[str, Cluster], ...]:
    """Names under which to price, and what they stand for; each once.

    Raises:
        UnknownInstance: an instance type without figures.
        InvalidInput: no instances, or a count below 1.
    """
    if not instances:
        raise InvalidInput("name at least one instance type to compare")
    listed = [instances] if isinstance(instances, str) else instances
    named = [(item, count) if isinstance(item, str) else _pair(item) for item in listed]
    chosen = {(name, number): Cluster(instance_type(name), number) for name, number in named}
    return tuple((name, cluster) for (name, _), cluster in chosen.items())


def _pair(item: Sequence[Any]) -> tuple[str, int]:
    if len(item) != 2:
        raise InvalidInput(f"an instance is a name or a name with a number of instances, not {item!r}")
    return item[0], item[1]
