"""What a comparison asks of a job, however it is known: counted in a rehearsal, or described."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .catalog import InstanceType
from .compute import Precision
from .errors import InvalidInput
from .intervals import RangeCheck
from .step import StepTime

if TYPE_CHECKING:
    from .fixed_costs import FixedCost
    from .footprint import MemoryNeed
    from .workload import CountedWorkload, FullScale

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
        if self.count < 1:
            raise InvalidInput(f"a job has at least 1 instance, not {self.count}")

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


class Workload(ABC):
    """One optimizer step of a job on any cluster. Made by `from_counters`."""

    @property
    @abstractmethod
    def weights(self) -> float | None:
        """Trained weights of the model; None: not known."""

    @property
    @abstractmethod
    def tokens_per_sample(self) -> int | None:
        """Tokens of one sample; None: not known."""

    @property
    @abstractmethod
    def default_count(self) -> int:
        """Instances where the caller names no number."""

    @abstractmethod
    def full_scale(self) -> FullScale:
        """The job where the caller tells no size."""

    @abstractmethod
    def batches(self, clusters: Sequence[Cluster], rule: BatchRule) -> tuple[float, ...]:
        """The global batch of each cluster."""

    @abstractmethod
    def precisions(self, instance: InstanceType, on_trn1: Precision) -> tuple[Precision, ...]:
        """How products can run there: first the one shown, then alternatives of the script's settings."""

    @abstractmethod
    def train_step(self, run: Run) -> StepTime:
        """The modelled optimizer step."""

    @abstractmethod
    def evaluation_step(self, run: Run) -> StepTime:
        """One forward pass over the batch."""

    @abstractmethod
    def range_check(self, run: Run, full_scale: FullScale) -> RangeCheck:
        """How far from the calibration's rows it lies, and the interval that follows."""

    @abstractmethod
    def compilation(self, run: Run, full_scale: FullScale) -> FixedCost:
        """The compiler's time before the first step."""

    @abstractmethod
    def memory(self, run: Run) -> MemoryNeed | None:
        """What a worker needs of its memory; None: not known."""

    @classmethod
    def from_counters(cls, counters: Mapping[str, Any]) -> CountedWorkload:
        """Read ``counters.json`` (schema ``windtunnel.counters/1``).

        Raises:
            InvalidCounters: wrong schema, a missing or impossible field (named), no training step,
                or no samples in it.
        """
        from .workload import CountedWorkload

        return CountedWorkload.from_counters(counters)
